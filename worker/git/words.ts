/**
 * Purpose: what the git commands of a workflow say: told to the caller, within one limit for all of them, or read.
 * Rights: none of its own. Bytes of users are passed on, and read only as what git's own formats are.
 * Called by: session.ts.
 * Fails: never; what is too much is cut, and what was asked for and cut is not read.
 */
import type { Outputs } from '../outputs.ts';
import type { RunExit } from '../runs/messages.ts';
import type { OutputSink } from '../runs/run.ts';

/** Most that the worker reads of one answer of git's, bytes. */
const askedBytesMax = 262_144;

/** `asked`: its standard output is the worker's to read, and no part of the answer. */
export type OutputUse = 'told' | 'asked';

/** The output of all commands of one workflow. */
export class Words {
  readonly #outputs: Outputs;
  readonly #room: Record<'stdout' | 'stderr', number>;
  readonly #bytesMax: number;
  /** Within `askedBytesMax`, by the supervisor. */
  #asked: Buffer[] = [];
  #cut = false;

  constructor(outputs: Outputs, bytesMax: number) {
    this.#outputs = outputs;
    this.#bytesMax = bytesMax;
    this.#room = { stdout: bytesMax, stderr: bytesMax };
  }

  /** True when the caller was not told all of it. */
  get cut(): boolean {
    return this.#cut;
  }

  /** What the supervisor need not pass on of each stream of a command, bytes. */
  limit(output: OutputUse): number {
    return output === 'told' ? this.#bytesMax : askedBytesMax;
  }

  /** Takes the output of the next command; of one that is asked, only what it complains about is told. */
  begin(output: OutputUse): OutputSink {
    this.#asked = [];
    return (stream, data, resume) => {
      if (output === 'told' || stream === 'stderr') return this.#tell(stream, data, resume);
      this.#asked.push(Buffer.from(data));
      return true;
    };
  }

  /** The command has ended: what its supervisor has dropped is missing too. */
  end({ stdoutCut, stderrCut }: RunExit, output: OutputUse): void {
    if (stdoutCut && output === 'told') this.#mark('stdout');
    if (stderrCut) this.#mark('stderr');
  }

  /** What the last command answered. */
  asked(): string {
    return Buffer.concat(this.#asked).toString('utf8');
  }

  #tell(stream: 'stdout' | 'stderr', data: Buffer<ArrayBuffer>, resume: () => void): boolean {
    const told = data.subarray(0, this.#room[stream]);
    this.#room[stream] -= told.length;
    if (told.length < data.length) this.#mark(stream);
    return this.#outputs.write(stream, told, resume);
  }

  #mark(stream: 'stdout' | 'stderr'): void {
    this.#cut = true;
    this.#outputs.markCut(stream);
  }
}
