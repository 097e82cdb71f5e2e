import { describe, expect, it } from 'vitest';
import { terminationOf } from '../../../../worker/processes/termination.ts';
import type { RunExit } from '../../../../worker/runs/messages.ts';
import { exitWith } from './support.ts';

const at = new Date('2026-01-02T03:04:05.678Z');
const nobody = { asked: new Set<string>(), linkLost: false };

describe('how a process ended', () => {
  const code = (exitCode: number) => ({ exitCode, signal: undefined });
  const by = (signal: string) => ({ exitCode: undefined, signal });
  const unseen = { exitCode: undefined, signal: undefined };
  it.each<[what: string, end: Partial<RunExit>, asked: string[], linkLost: boolean, reason: string]>([
    ['it left', code(3), [], false, 'exit'],
    ['it left after a signal that was asked for', code(9), ['SIGINT'], false, 'exit'],
    ['it left after it was told to end', { ...code(6), reason: 'stopped' }, [], false, 'exit'],
    ['it left, and the link was lost as well', code(0), [], true, 'exit'],
    ['a signal of its own', by('SIGSEGV'), [], false, 'signal'],
    ['a signal that was asked for', by('SIGINT'), ['SIGINT'], false, 'terminated'],
    ['another signal than was asked for', by('SIGSEGV'), ['SIGINT'], false, 'signal'],
    ['a signal of its own, when the link was lost as well', by('SIGSEGV'), [], true, 'signal'],
    ['it was ended', { ...by('SIGKILL'), reason: 'stopped' }, [], false, 'terminated'],
    ['it was ended since the link was lost', { ...by('SIGTERM'), reason: 'stopped' }, [], true, 'link_lost'],
    ['it left since the link was lost', { ...code(0), reason: 'stopped' }, [], true, 'link_lost'],
    ['its time was over', { ...by('SIGTERM'), reason: 'timeout' }, [], false, 'timeout'],
    ['its time was over, and it left', { ...code(1), reason: 'timeout' }, ['SIGTERM'], false, 'timeout'],
    ['its time was over before the link was lost', { ...by('SIGKILL'), reason: 'timeout' }, [], true, 'timeout'],
    ['its supervisor lost the spawner', { ...by('SIGKILL'), reason: 'spawnerLost' }, [], false, 'link_lost'],
    ['and nobody saw more of it', { ...unseen, reason: 'spawnerLost' }, ['SIGTERM'], false, 'link_lost'],
  ])('%s', (_what, end, asked, linkLost, reason) => {
    expect(terminationOf(exitWith(end), { asked: new Set(asked), linkLost }, at)).toStrictEqual({
      reason,
      exitCode: end.exitCode ?? null,
      signal: end.signal ?? null,
      endedAt: '2026-01-02T03:04:05.678Z',
      maxRssBytes: 4096,
      cpuMs: 3,
    });
  });

  it.each([[{ kind: 'lost' as const }], [{ kind: 'unreached' as const }]])(
    'is not known when nobody saw it (%o), and nothing is made up',
    (end) => {
      expect(terminationOf(end, nobody, at)).toStrictEqual({
        reason: 'link_lost',
        exitCode: null,
        signal: null,
        endedAt: '2026-01-02T03:04:05.678Z',
        maxRssBytes: null,
        cpuMs: null,
      });
    },
  );
});
