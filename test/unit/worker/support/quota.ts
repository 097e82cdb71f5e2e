import type { Refusal } from '../../../../protocol/errors.ts';
import { Quota } from '../../../../worker/quota.ts';
import { Spawner } from '../../../../worker/runs/spawner.ts';
import type { Spaces } from '../../../../worker/spaces.ts';
import { UsageScans } from '../../../../worker/usage/scan.ts';
import { collectingLog } from './collect.ts';

/** Refuses when it is told to; counts nothing. */
export class StandInQuota extends Quota {
  refusal: Refusal | undefined;
  readonly asked: string[] = [];

  constructor(spaces: Spaces) {
    const { log } = collectingLog();
    const spawner = new Spawner({ program: '/nowhere', folder: '/nowhere', lock: '/nowhere' }, log);
    super(1, spaces, new UsageScans(spawner, '/nowhere', log));
  }

  override async check(user: number): Promise<void> {
    this.asked.push(`check ${user}`);
    if (this.refusal) throw this.refusal;
  }

  override changed(user: number): void {
    this.asked.push(`changed ${user}`);
  }
}
