/**
 * Largest piece that is handed over at once, bytes. A transport may ask for the next piece before it sees that the
 * connection broke in the last one; with pieces, that is not yet the end.
 */
const pieceBytes = 64 * 1024;

/**
 * A request body that can be read once. From this follows all that the client knows of a request without an answer:
 * - A body with a source of its own would be sent again behind the caller's back: fetch repeats such a request after
 *   a 421 (Fetch standard, "HTTP-network-or-cache fetch") and after a redirect. A stream can't be repeated.
 * - A stream has no length in advance, so the request ends on the wire only after the transport has learned from here
 *   that the body ends. Until then the service can't have the whole request, and without it begins nothing.
 */
export class OneShotBody {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  #handedOver = false;
  #withdrawn = false;

  constructor(text: string) {
    const bytes = new TextEncoder().encode(text);
    let at = 0;
    this.stream = new ReadableStream(
      {
        pull: (controller) => {
          if (this.#withdrawn) controller.error(new Error('the request was given up'));
          else if (at < bytes.length) {
            controller.enqueue(bytes.slice(at, at + pieceBytes));
            at += pieceBytes;
          } else {
            this.#handedOver = true;
            controller.close();
          }
        },
      },
      // Nothing is taken ahead: what was taken, was taken to be sent.
      { highWaterMark: 0 },
    );
  }

  /** Lets no more of it out. True when all of it was out already, so that the service may have the request. */
  withdraw(): boolean {
    this.#withdrawn = true;
    return this.#handedOver;
  }
}
