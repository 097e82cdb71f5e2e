import type { Struck } from './control.ts';
import type { RoundPlan } from './plan.ts';
import type { Effect } from './rows/row.ts';

/** What a caller got. */
export type Heard =
  | { readonly came: 'answer'; readonly status: number; readonly replayed: boolean; readonly body: Body }
  /** The connection broke, or there was none. */
  | { readonly came: 'nothing'; readonly code: string };

export type Body = Readonly<Record<string, unknown>>;

/** The look-up of one operation: its status, or undefined for 404. */
export interface LookUp {
  readonly by: string;
  readonly found: Body | undefined;
}

/** All that is known after a round. */
export interface Evidence {
  readonly plan: RoundPlan;
  /** undefined: the fault never happened. */
  readonly struck: Struck | undefined;
  /** What the callers got who were there when it happened. */
  readonly heard: readonly Heard[];
  /** After the recovery. */
  readonly lookUps: readonly LookUp[];
  readonly byKey: LookUp | undefined;
  readonly effect: Effect;
  /** What they got who sent it again under its key, and the last one, alone. */
  readonly heardAgain: readonly Heard[];
  readonly byKeyAgain: LookUp | undefined;
  readonly effectAgain: Effect;
  /** Things that did not come within their bound. */
  readonly overdue: readonly string[];
  readonly recoveryMs: number;
}
