/**
 * Purpose: how the fs helper's program is started.
 * Rights: none of its own.
 * Called by: main.ts.
 * Fails: never; a program that isn't there is found out by the first start (stand-by.ts).
 */
import { fileURLToPath } from 'node:url';
import { processesForHelper } from '../../protocol/limits.ts';
import type { HelperPlan } from '../runs/plan.ts';

const program = fileURLToPath(new URL('../../helper/fs/main.js', import.meta.url));

/**
 * Without the inspector that a user's signal would open; without V8's worker threads, which count towards the user's
 * processes and do nothing for a program that waits in system calls; bounded, since a user's tree decides how much it holds.
 */
const flags = ['--disable-sigusr1', '--v8-pool-size=0', '--max-old-space-size=128'];

/** The plan of a helper. Limits are those of the user's runs; 0 = not set. */
export const helperPlan = (limits: { readonly processesMax: number; readonly fileBytesMax: number }): HelperPlan => ({
  program: process.execPath,
  args: [process.execPath, ...flags, program],
  environment: [],
  processesMax: limits.processesMax === 0 ? 0 : limits.processesMax + processesForHelper,
  fileBytesMax: limits.fileBytesMax,
});
