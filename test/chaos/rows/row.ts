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
  /** What is to be asked for before, so that there is something to change. */
  prepare?(target: EffectPlace): { readonly route: string; readonly body: Readonly<Record<string, unknown>> };
  /** The request's body. The canary is in it, and no other request has that one. */
  body(target: EffectPlace, held: boolean): Readonly<Record<string, unknown>>;
  /** Reads from the disk what was done for this canary. */
  effect(place: EffectPlace): Effect;
  /** True if an answer's body with status 200 says that the whole effect is there; also without its outputs. */
  succeeded(body: Readonly<Record<string, unknown>>): boolean;
}

/** Whose effect it is, and where it would be. */
export interface EffectPlace {
  readonly user: number;
  readonly home: string;
  readonly canary: string;
}

/** How often an effect was begun, and how often it was completed: 0 and 0 for none, 1 and 0 for a part of one. */
export interface Effect {
  readonly begun: number;
  readonly completed: number;
}
