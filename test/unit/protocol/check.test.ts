import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { check } from '../../../protocol/check.ts';
import { errors, Refusal } from '../../../protocol/errors.ts';
import { exec } from '../../../protocol/operations/exec.ts';
import { processRead } from '../../../protocol/operations/process-read.ts';
import { repoPush } from '../../../protocol/operations/repo-push.ts';
import { answeredWith } from '../../../protocol/values.ts';

// Many rounds: on a busy machine they take long, and that is no failure.
vi.setConfig({ testTimeout: 120_000 });

const refusal = (schema: z.ZodType, value: unknown): Refusal => {
  try {
    check(schema, value);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error('it was not refused');
};
const good = { user: 7, tool: 'git' };

describe('check names the field', () => {
  it.each<readonly [name: string, value: unknown, message: string]>([
    ['a missing field', { user: 7 }, 'The field "tool" is missing.'],
    ['the first of the missing fields', {}, 'The field "user" is missing.'],
    ['a field that is undefined', { user: 7, tool: undefined }, 'The field "tool" is missing.'],
    ['a wrong type', { ...good, tool: 5 }, 'The field "tool" must be of type string.'],
    ['null where a value is needed', { ...good, tool: null }, 'The field "tool" must be of type string.'],
    ['a number as text', { ...good, user: '7' }, 'The field "user" must be of type number.'],
    ['a number that is not whole', { ...good, user: 1.5 }, 'The field "user" must be of type int.'],
    ['a value out of bounds', { ...good, user: -1 }, 'The field "user" is not valid.'],
    ['an array that is none', { ...good, args: 'status' }, 'The field "args" must be of type array.'],
    ['an object for an array', { ...good, args: { length: 1 } }, 'The field "args" must be of type array.'],
    ['an item of an array', { ...good, args: ['a', 'b', 'c', 4] }, 'The field "args[3]" must be of type string.'],
    ['an item with NUL', { ...good, args: ['a', '\0'] }, 'The field "args[1]" must not contain NUL.'],
    ['an environment entry', { ...good, env: ['A=1', '1A=1'] }, 'The field "env[1]" is not valid.'],
    ['an unknown field', { ...good, uid: 0 }, 'There is an unknown field "uid".'],
    [
      'an unknown field named __proto__',
      JSON.parse('{"user":7,"tool":"git","__proto__":{}}'),
      'There is an unknown field "__proto__".',
    ],
    ['an unknown field named constructor', { ...good, constructor: 1 }, 'There is an unknown field "constructor".'],
    ['an unknown field that is no name', { ...good, 'a b': 0 }, 'There is an unknown field.'],
    ['an unknown field without a name', { ...good, '': 0 }, 'There is an unknown field.'],
    [
      'an unknown field of 32 characters',
      { ...good, ['x'.repeat(32)]: 0 },
      `There is an unknown field "${'x'.repeat(32)}".`,
    ],
    ['an unknown field of 33 characters', { ...good, ['x'.repeat(33)]: 0 }, 'There is an unknown field.'],
    ['the nameable one of several', { ...good, 'a b': 0, uid: 0 }, 'There is an unknown field "uid".'],
  ])('%s', (_name, value, message) => {
    expect(refusal(exec.params, value)).toMatchObject({ code: 'bad_request', message, details: undefined });
  });

  it.each([[[]], [[good]], [null], [undefined], [5], ['text'], [true], [Number.NaN]])(
    'refuses %j, which is no object',
    (value) => {
      expect(refusal(exec.params, value)).toMatchObject({
        code: 'bad_request',
        message: 'The request must be a JSON object.',
      });
    },
  );

  it('down to inner objects', () => {
    const schema = z.strictObject({ outer: z.strictObject({ list: z.array(z.strictObject({ size: z.int() })) }) });
    const wrong = { outer: { list: [{ size: 1 }, { size: 'x' }] } };
    expect(refusal(schema, wrong).message).toBe('The field "outer.list[1].size" must be of type number.');
  });

  it('but not a name of the caller’s making that does not look like one', () => {
    const schema = z.strictObject({ map: z.record(z.string(), z.int()) });
    expect(refusal(schema, { map: { 'a secret!': 'x' } }).message).toBe('The field "map.?" must be of type number.');
    expect(refusal(schema, { map: { ['k'.repeat(33)]: 'x' } }).message).toBe(
      'The field "map.?" must be of type number.',
    );
    expect(refusal(schema, { map: { fine: 'x' } }).message).toBe('The field "map.fine" must be of type number.');
  });
});

describe('check decides on one code', () => {
  it.each<readonly [name: string, value: unknown, code: 'bad_request' | 'bad_agent' | 'outside_workspace']>([
    ['a path that leads out', { ...good, dir: '../x' }, 'outside_workspace'],
    ['and an unknown field', { ...good, dir: '../x', uid: 0 }, 'bad_request'],
    ['and a wrong type after it', { ...good, dir: '../x', env: 5 }, 'bad_request'],
    ['and a wrong type ahead of it', { dir: '../x', user: 'x', tool: 'git' }, 'bad_request'],
    ['and a value out of bounds', { ...good, dir: '../x', user: -1 }, 'bad_request'],
    ['and a missing field', { user: 7, dir: '../x' }, 'bad_request'],
    ['a path that leads out and is too long', { ...good, dir: `../${'x'.repeat(5000)}` }, 'bad_request'],
    ['a path that leads out and is not Unicode', { ...good, dir: '../\ud800' }, 'bad_request'],
    ['a bad agent', { ...good, agent: 'x' }, 'bad_agent'],
    ['a bad agent and an unknown field', { ...good, agent: 'x', uid: 0 }, 'bad_request'],
    ['a bad agent and a number out of bounds', { ...good, agent: 'x', user: -1 }, 'bad_request'],
    ['a bad agent and a path that leads out', { ...good, agent: 'x', dir: '/' }, 'outside_workspace'],
  ])('%s', (_name, value, code) => {
    const { code: found, message } = refusal(exec.params, value);
    expect(found).toBe(code);
    const texts = {
      bad_request: expect.any(String),
      bad_agent: errors.bad_agent.text,
      outside_workspace: 'The field "dir" must be relative, without ".." and NUL.',
    };
    expect(message).toEqual(texts[code]);
  });

  it('with the name of the entry of an environment, and of a name', () => {
    const fields = { user: 7, project: 'a', conversation: '0f8fad5b-d9cb-469f-a165-70867728950e' };
    expect(refusal(repoPush.params, { ...fields, env: ['A=1', 'GIT_DIR=secret'] }).message).toBe(
      'The field "env[1]" could change what git does or whom it asks.',
    );
    expect(refusal(repoPush.params, { ...fields, project: '-a' }).message).toBe(
      'The field "project" must be the name of a clone.',
    );
  });

  it('and of what is only not there, nothing more', () => {
    expect(refusal(processRead.params, { processId: 'x' }).message).toBe(errors.process_not_found.text);
  });

  it('bad_request first, in whatever order the checks fail', () => {
    const special = z.string().refine(() => false, answeredWith('bad_agent', 'never right'));
    const schema = z.strictObject({ a: special, b: z.string().refine(() => false, 'never right'), c: special });
    expect(refusal(schema, { a: '', b: '', c: '' })).toMatchObject({
      code: 'bad_request',
      message: 'The field "b" never right.',
    });
  });
});

describe('check passes on', () => {
  it('what the schema makes of a good value', () => {
    expect(check(exec.params, good)).toStrictEqual(good);
    expect(check(z.string().transform(Number), '7')).toBe(7);
  });

  it('a bug in a schema as it is', () => {
    const broken = z.string().refine(() => {
      throw new TypeError('a bug');
    });
    expect(() => check(broken, 'x')).toThrow(TypeError);
  });
});

describe('a planted secret', () => {
  const secret = 'glpat-S3cr3t_0123456789-planted-and-longer-than-a-name';
  const value = fc.oneof(
    fc.constantFrom<unknown>(secret, [secret], { [secret]: secret }, `${secret}\0`, `/${secret}`, `../${secret}`),
    fc.string().map((text) => `${text}${secret}`),
    fc.constantFrom<unknown>(`${secret}\ud800`, [[secret]], [`A=${secret}`, secret], secret.repeat(200)),
  );
  const field = fc.constantFrom('user', 'tool', 'args', 'dir', 'env', 'agent', 'extra', secret, `x ${secret}`, '');
  const body = fc.oneof(
    { weight: 8, arbitrary: fc.dictionary(field, value, { noNullPrototype: true }) },
    {
      weight: 8,
      arbitrary: fc.dictionary(field, value, { noNullPrototype: true }).map((more) => ({ ...good, ...more })),
    },
    { weight: 1, arbitrary: value },
  );

  it('is in no refusal, whether it is a value or an odd name', () => {
    let refused = 0;
    fc.assert(
      fc.property(body, (request) => {
        const outcome = exec.params.safeParse(request);
        if (outcome.success) return;
        refused += 1;
        const { message, details, cause, stack } = refusal(exec.params, request);
        expect(JSON.stringify([message, details, cause, stack])).not.toContain(secret.slice(0, 20));
      }),
      { seed: 32, numRuns: 2000 },
    );
    expect(refused).toBeGreaterThan(1500);
  });
});
