/** `npm run chaos [-- --rounds 5000] [--seed S] [--round N] [--services K]`: see docs/chaos.md. */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import type { Evidence } from './evidence.ts';
import { strikes } from './points.ts';
import { explain, runRounds } from './rounds.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '1000' },
    seed: { type: 'string' },
    round: { type: 'string' },
    services: { type: 'string', default: '3' },
    verbose: { type: 'boolean' },
  },
});

const seed = values.seed === undefined ? randomInt(1_000_000) : Number(values.seed);
const count = Number(values.rounds);
const rounds = values.round === undefined ? Array.from({ length: count }, (_, at) => at) : [Number(values.round)];
const services = Number(values.services);
if (![seed, count, services, ...rounds].every(Number.isSafeInteger)) throw new Error('every option is a whole number');

const say = (text: string): void => void process.stderr.write(`${text}\n`);
say(`chaos: seed ${seed}, ${rounds.length} rounds of ${strikes.length} ways to strike`);
const began = performance.now();
const progress = (done: number, { plan, heard: answers, recoveryMs: ms }: Evidence): void => {
  if (values.verbose) {
    const kinds = answers.map((one) => (one.came === 'answer' ? (one.body['error'] ?? one.status) : one.code));
    say(`round ${plan.round}: ${plan.point}: ${plan.fault}: ${kinds.join(', ')}; recovered in ${ms} ms`);
  }
  if (done % 100 === 0) say(`chaos: ${done} rounds, ${Math.round((performance.now() - began) / 1_000)} s`);
};
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
const { signal } = interrupted;
const { failures, recoveryMs, heard } = await runRounds({ seed, rounds, services, signal, progress });
for (const failure of failures) process.stdout.write(`${explain(failure)}\n\n`);
const sorted = recoveryMs.toSorted((a, b) => a - b);
say(`chaos: first answers: ${JSON.stringify(Object.fromEntries(heard))}`);
say(`chaos: recovery: median ${sorted[Math.floor(sorted.length / 2)]} ms, longest ${sorted.at(-1)} ms`);
say(`chaos: seed ${seed}: ${failures.length} of ${recoveryMs.length} rounds failed`);
process.exitCode = failures.length === 0 ? 0 : 1;
