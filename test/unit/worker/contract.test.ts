import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { endReason, exitFlag, launchSteps, messageKind, standardStreams, wire } from '../../../helper/contract.ts';
import {
  argumentsMax,
  environmentEntriesMax,
  killLimitMs,
  termGraceMs,
  userNumberMax,
  userUidFirst,
} from '../../../protocol/limits.ts';
import { settingsTable } from '../../../protocol/settings.ts';

const text = readFileSync(new URL('../../../helper/native/wire.h', import.meta.url), 'utf8');
const defines = new Map(
  [...text.matchAll(/^#define[ \t]+([A-Z0-9_]+)[ \t]+(\d+)\b/gm)].map(([, name = '', value]) => [name, Number(value)]),
);

const camel = (name: string): string =>
  name.toLowerCase().replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());

/** The defines with a prefix, less those that mean something else, named as TypeScript names them. */
const group = (prefix: string, less: readonly string[] = []): Record<string, number> =>
  Object.fromEntries(
    [...defines]
      .filter(([name]) => name.startsWith(prefix) && !less.includes(name))
      .map(([name, value]) => [camel(name.slice(prefix.length)), value]),
  );

const number = (name: string): number => {
  const value = defines.get(name);
  if (value === undefined) throw new Error(`wire.h does not define ${name}`);
  return value;
};

describe('the launch format, as both languages have it', () => {
  it('reads every define of wire.h', () => {
    const written = [...text.matchAll(/^#define[ \t]+([A-Z0-9_]+)[ \t]+\S/gm)].map(([, name]) => name);
    expect(written.length).toBeGreaterThan(40);
    expect([...defines.keys()]).toStrictEqual(written);
  });

  it('has the same kinds of messages', () => {
    expect({ ...messageKind }).toStrictEqual(group('MSG_', ['MSG_HEADER']));
  });

  it('has the same reasons for an end', () => {
    expect({ ...endReason }).toStrictEqual(group('END_', ['END_LIMIT_MS']));
  });

  it('has the same standard streams', () => {
    expect({ ...standardStreams }).toStrictEqual(group('STDIO_'));
  });

  it('has the same exit flags', () => {
    expect({ ...exitFlag }).toStrictEqual(group('EXIT_', ['EXIT_BODY']));
  });

  it('has the same steps, in the same order, without a gap', () => {
    const steps = [...defines].filter(([name]) => name.startsWith('STEP_'));
    expect(steps.map(([name]) => name.slice('STEP_'.length).toLowerCase())).toStrictEqual([...launchSteps]);
    expect(steps.map(([, value]) => value)).toStrictEqual(launchSteps.map((_step, index) => index + 1));
  });

  it('has the same sizes', () => {
    expect({ ...wire }).toStrictEqual({
      version: number('WIRE_VERSION'),
      headerBytes: number('MSG_HEADER'),
      runFixedBytes: number('RUN_FIXED'),
      exitBytes: number('EXIT_BODY'),
      failedBytes: Number(/MSG_FAILED +(\d+) bytes/.exec(text)?.[1]),
      planBytesMax: number('PLAN_MAX'),
      relayBytesMax: number('RELAY_MAX'),
      stdinWindowBytes: number('STDIN_WINDOW'),
      stdinTakenBytes: Number(/MSG_STDIN_TAKEN +(\d+) bytes/.exec(text)?.[1]),
    });
  });

  it('gives no number to two messages, reasons or steps', () => {
    for (const values of [Object.values(messageKind), Object.values(endReason), Object.values(exitFlag)]) {
      expect(new Set(values).size).toBe(values.length);
    }
    expect(new Set(launchSteps).size).toBe(launchSteps.length);
  });

  it('takes all that the worker may ask for', () => {
    // The program's own name, and --session-agent with its id, beyond the caller's.
    expect(number('LIMIT_ARGS_MAX')).toBeGreaterThanOrEqual(argumentsMax + 3);
    // PATH, LANG and HOME beyond the caller's.
    expect(number('LIMIT_ENV_MAX')).toBeGreaterThanOrEqual(environmentEntriesMax + 3);
    const longest = settingsTable.RUNNER_EXEC_TIMEOUT_SEC.schema.parse('86400');
    expect(settingsTable.RUNNER_EXEC_TIMEOUT_SEC.schema.safeParse('86401').success).toBe(false);
    expect(number('LIMIT_TIME_MS_MAX')).toBeGreaterThanOrEqual(longest * 1000);
    expect(number('LIMIT_GRACE_MS_MAX')).toBeGreaterThanOrEqual(termGraceMs);
    expect(number('LIMIT_NUMBER_MAX')).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('means the same users and the same kill limit', () => {
    expect(number('USER_UID_FIRST')).toBe(userUidFirst);
    expect(number('USER_UID_LAST')).toBe(userUidFirst + userNumberMax);
    expect(number('KILLER_UID_FIRST')).toBe(0x4000_0000);
    expect(number('END_LIMIT_MS')).toBe(killLimitMs);
  });

  it('knows every name of wire.h by now', () => {
    const groups = /^(MSG|END|EXIT|STEP|LIMIT|STDIO)_/;
    const others = [...defines.keys()].filter((name) => !groups.test(name));
    expect(others).toStrictEqual([
      'WIRE_VERSION',
      'RUN_FIXED',
      'PLAN_MAX',
      'RELAY_MAX',
      'STDIN_WINDOW',
      'USER_UID_FIRST',
      'USER_UID_LAST',
      'KILLER_UID_FIRST',
    ]);
    expect([...defines.keys()].filter((name) => name.startsWith('LIMIT_'))).toStrictEqual([
      'LIMIT_ARGS_MAX',
      'LIMIT_ENV_MAX',
      'LIMIT_TIME_MS_MAX',
      'LIMIT_GRACE_MS_MAX',
      'LIMIT_NUMBER_MAX',
    ]);
  });
});
