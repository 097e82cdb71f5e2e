import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { processesOf } from '../../support/processes.ts';
import { left, native, type Plan, Spawner, sanitized, wire } from '../../support/spawner-client.ts';
import { eventually } from '../../support/wait.ts';

const uid = 900_911;
const count = 40;

describe.each([
  ['release', native],
  ['sanitized', sanitized],
])('a tree that is told to end, %s', (_name, program) => {
  let spawner: Spawner;
  let space: string;
  beforeEach(async () => {
    spawner = await Spawner.start({ program });
    space = spawner.makeSpace(uid);
  });
  afterEach(async () => {
    const [said, stayed] = [spawner.log, left(uid)];
    await spawner.stop();
    expect({ said, stayed }).toEqual({ said: '', stayed: [] });
  });

  test.each<[string, Partial<Plan>]>([
    ['pipes', { stdio: wire('STDIO_PIPES') }],
    ['a terminal', { terminal: { rows: 24, cols: 80 } }],
  ])('on %s: what loses its parent by it is told as well, and each is told once', async (_streams, streams) => {
    // Each child hears of it and goes on for a while; its parent is gone at once.
    const child = `trap "" HUP; trap "echo heard >>heard; end=1" TERM; echo up >>up
      until [ "$end" ]; do sleep 0.5; done; sleep 0.2`;
    const script = `for n in $(seq ${count}); do sh -c '(${child}) & wait' & done; trap "" HUP TERM; wait`;
    const args = ['/bin/sh', '-c', script];
    const env = ['PATH=/usr/bin:/bin'];
    const process = await spawner.start({ uid, args, env, graceMs: 5_000, outputCap: 1_000_000, ...streams });
    await process.until('the start', () => process.started);
    const home = (name: string): string => join(space, 'home', name);
    const up = () => existsSync(home('up')) && readFileSync(home('up'), 'utf8').length === 3 * count;
    await eventually('all are up', up, 60_000);
    expect(processesOf(uid).length).toBeGreaterThan(2 * count);
    process.stop();
    await process.outcome;
    expect(readFileSync(home('heard'), 'utf8')).toBe('heard\n'.repeat(count));
  });
});
