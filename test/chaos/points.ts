/** What a fault does: to the link or connection at that point, or to a process. */
export type Fault =
  | 'cut'
  | 'kill'
  | 'kill-spawner'
  | 'cut-gateway'
  | 'cut-worker'
  | 'kill-gateway'
  | 'kill-worker'
  | 'kill-supervisor'
  | 'kill-worker-and-spawner'
  | 'kill-all';

/** Who strikes: the process itself at an exact place of its code, strace(1) at a system call, or the harness. */
export type Striker = 'gateway' | 'worker' | 'strace' | 'harness';

interface PointRow {
  readonly by: Striker;
  readonly faults: readonly Fault[];
}

/** The places at which a request can be struck, in the order in which it passes them. */
export const points = {
  /** The gateway has just lost its link, and the caller does not know. */
  unlinked: { by: 'harness', faults: ['cut-gateway', 'kill-worker'] },
  /** Minted, and not a byte of it is out. */
  'request-unsent': { by: 'gateway', faults: ['cut', 'kill'] },
  'request-half': { by: 'gateway', faults: ['cut', 'kill'] },
  'request-sent': { by: 'gateway', faults: ['cut', 'kill'] },
  /** The worker has it, and has not looked at it. */
  received: { by: 'worker', faults: ['cut', 'kill'] },
  /** The ledger's thread has just been asked; whether it gets to it is open. */
  'record-asked': { by: 'worker', faults: ['kill'] },
  /** On record, and nothing is done yet. */
  recorded: { by: 'worker', faults: ['cut', 'kill', 'kill-spawner'] },
  'plan-half': { by: 'worker', faults: ['cut', 'kill', 'kill-spawner'] },
  'plan-sent': { by: 'worker', faults: ['cut', 'kill', 'kill-spawner'] },
  /** System calls of the spawner and the supervisor. Each dies in the call, before the kernel carries it out. */
  'spawner-accept4': { by: 'strace', faults: ['kill'] },
  'spawner-clone': { by: 'strace', faults: ['kill'] },
  'supervisor-setresuid': { by: 'strace', faults: ['kill'] },
  'supervisor-pipe2': { by: 'strace', faults: ['kill'] },
  'supervisor-sendmsg': { by: 'strace', faults: ['kill'] },
  'supervisor-shutdown': { by: 'strace', faults: ['kill'] },
  /** The effect has begun, and stays where it is. */
  begun: {
    by: 'harness',
    faults: [
      'cut-gateway',
      'cut-worker',
      'kill-gateway',
      'kill-worker',
      'kill-spawner',
      'kill-supervisor',
      'kill-worker-and-spawner',
      'kill-all',
    ],
  },
  /** Some moment after the request was sent. */
  moment: {
    by: 'harness',
    faults: ['cut-gateway', 'cut-worker', 'kill-gateway', 'kill-worker', 'kill-spawner', 'kill-all'],
  },
  /** The effect is complete, and the worker knows it. */
  done: { by: 'worker', faults: ['cut', 'kill', 'kill-spawner'] },
  'finish-asked': { by: 'worker', faults: ['kill'] },
  /** The outcome is on record, and nobody was told. */
  finished: { by: 'worker', faults: ['cut', 'kill'] },
  'reply-unsent': { by: 'worker', faults: ['cut', 'kill'] },
  'reply-half': { by: 'worker', faults: ['cut', 'kill'] },
  'reply-sent': { by: 'worker', faults: ['cut', 'kill'] },
  /** The gateway has the worker's answer. */
  'answer-unsent': { by: 'gateway', faults: ['cut', 'kill'] },
  'answer-half': { by: 'gateway', faults: ['cut', 'kill'] },
  'answer-sent': { by: 'gateway', faults: ['cut', 'kill'] },
} as const satisfies Record<string, PointRow>;

export type Point = keyof typeof points;

/** One way to strike. */
export interface Strike {
  readonly point: Point;
  readonly fault: Fault;
}

/** Every way there is. */
export const strikes: readonly Strike[] = Object.entries(points).flatMap(([point, { faults }]) =>
  faults.map((fault) => ({ point: point as Point, fault })),
);

/** The points that are struck by one of these. */
export const strikerOf = (point: Point): Striker => points[point].by;
