import { constants } from 'node:os';
import { root, type Service } from './service.ts';

/** The tool that tries to reach something; for RUNNER_TOOLS. */
export const reachTool = `reach=${root}/dist/test/reach`;

const nameOf = (errno: number): string =>
  Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;

/** Tries, as a user, to reach something: `ok`, or the name of the error that stopped it. */
export const reach = async (service: Service, user: number, ...attempt: readonly string[]): Promise<string> => {
  const { status, body } = await service.exec(user, 'reach', attempt);
  if (status !== 200 || body.exitCode !== 0 || !/^\d+\n$/.test(body.stdout ?? ''))
    throw new Error(`the attempt itself failed: ${JSON.stringify(body)}`);
  const errno = Number(body.stdout);
  return errno === 0 ? 'ok' : nameOf(errno);
};
