import { Refusal } from '../../../../protocol/errors.ts';
import { Process } from '../../../../worker/processes/process.ts';
import type { RunExit } from '../../../../worker/runs/messages.ts';
import type { RunEnd } from '../../../../worker/runs/run.ts';
import type { RunControls } from '../../../../worker/runs/runs.ts';

/** What a process is spoken to by, which keeps what was said. */
export class Told implements RunControls {
  readonly said: string[] = [];
  listens = true;
  /** How many bytes there is room for. */
  room = Number.POSITIVE_INFINITY;

  stop(): void {
    this.listens = false;
    this.said.push('stop');
  }
  kill(): void {
    this.listens = false;
    this.said.push('kill');
  }
  signal(signal: number): void {
    this.said.push(`signal ${signal}`);
  }
  resize({ rows, cols }: { readonly rows: number; readonly cols: number }): void {
    this.said.push(`resize ${rows} ${cols}`);
  }
  accepts(bytes: number): boolean {
    return bytes <= this.room;
  }
  offer(data: Buffer): void {
    this.room -= data.length;
    this.said.push(`input ${data.toString('latin1')}`);
  }
  closeInput(): void {
    this.said.push('end of input');
  }
}

/** A process of user 7. */
export const processWith = ({ tty = false, retainBytes = 1024 } = {}): Process =>
  new Process(
    { processId: `7-${'A'.repeat(22)}`, workspaceId: '7', user: 7, tool: 'sh', tty, startedAt: new Date(0) },
    retainBytes,
  );

/** An end that was seen: exit code 0, unless told otherwise. */
export const exitWith = (more: Partial<RunExit> = {}): Extract<RunEnd, { kind: 'exit' }> => ({
  kind: 'exit',
  exit: {
    reason: 'exited',
    exitCode: 0,
    signal: undefined,
    stdoutCut: false,
    stderrCut: false,
    maxRssBytes: 4096,
    cpuMicros: 2_600,
    durationMicros: 9_000,
    ...more,
  },
});

/** The code that a step is refused with; undefined when it is not. */
export const codeOf = (step: () => unknown): string | undefined => {
  try {
    step();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
};
