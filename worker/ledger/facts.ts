/**
 * Purpose: what the ledger remembers of itself: which key its digests were made with, whether it was closed well, and
 * of which time records may be missing.
 * Rights: none of its own.
 * Called by: database.ts.
 */
import type { DatabaseSync } from 'node:sqlite';

/** A time of which records may be missing, ms since 1970: an unknown operation of it may have begun all the same. */
export interface Gap {
  readonly from: number;
  readonly to: number;
}

/** Small values by name, in a table of their own. */
export class Facts {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  text(name: 'key_check' | 'boot_id'): string | undefined {
    const value = this.#get(name);
    return typeof value === 'string' ? value : undefined;
  }

  get closedWell(): boolean {
    return this.#get('closed_well') === 1;
  }

  get gap(): Gap | undefined {
    const [from, to] = [this.#get('gap_from'), this.#get('gap_to')];
    return typeof from === 'number' && typeof to === 'number' ? { from, to } : undefined;
  }

  set(values: Readonly<Record<string, string | number>>): void {
    const statement = this.#database.prepare('INSERT OR REPLACE INTO fact (name, value) VALUES (?, ?)');
    for (const [name, value] of Object.entries(values)) statement.run(name, value);
  }

  /** Widens the time of which records may be missing. */
  addGap({ from, to }: Gap): void {
    const known = this.gap ?? { from, to };
    this.set({ gap_from: Math.min(known.from, from), gap_to: Math.max(known.to, to) });
  }

  #get(name: string): unknown {
    return this.#database.prepare('SELECT value FROM fact WHERE name = ?').get(name)?.['value'];
  }
}
