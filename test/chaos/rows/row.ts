import type { Body } from '../evidence.ts';
import type { Striker } from '../points.ts';

/** One way to ask for a mutation so that its effect can be counted on the disk. */
export interface ChaosRow {
  readonly what: string;
  /** True if `held` makes it stay in the middle of its effect until it is ended. */
  readonly holds: boolean;
  /** Who can strike it. */
  readonly strikers: readonly Striker[];
  readonly route: string;
  /** True for one whose user no other round may have. */
  readonly userOfItsOwn?: true;
  /**
   * Its effect is on a process, which is ended with the link that a strike cuts: a success may leave nothing on the disk.
   * On a `prepared` one it may then come too late when it is sent again.
   */
  readonly onProcess?: 'new' | 'prepared';
  /** What is to be asked for before, so that there is something to change. */
  prepare?(target: EffectPlace): ChaosRequest;
  /** True when what was asked for before is there to be changed; without it, it is with the answer. */
  ready?(place: EffectPlace): boolean;
  /** What is to be asked for after the recovery, so that nothing of what was prepared is left. */
  release?(place: EffectPlace): ChaosRequest;
  /** A text in the request that no other request has, if that is not the canary. */
  mark?(target: EffectPlace): string;
  /** The request's body. The canary is in it, and no other request has that one. */
  body(target: EffectPlace, held: boolean): Body;
  /** Reads from the disk what was done for this canary. */
  effect(place: EffectPlace): Effect;
  /** True if an answer's body with status 200 says that the whole effect is there; also without its outputs. */
  succeeded(body: Body): boolean;
}

/** A request beside the one that is struck. */
export interface ChaosRequest {
  readonly route: string;
  readonly body: Body;
}

/** Whose effect it is, and where it would be. */
export interface EffectPlace {
  readonly user: number;
  readonly home: string;
  readonly canary: string;
  /** The answer to what was asked for before. */
  readonly prepared?: Body;
}

/** How often an effect was begun, and how often it was completed: 0 and 0 for none, 1 and 0 for a part of one. */
export interface Effect {
  readonly begun: number;
  readonly completed: number;
}
