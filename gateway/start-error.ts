/** The service can't start as it was set up; the message is one sentence for the operator. */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}
