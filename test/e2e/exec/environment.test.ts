import { afterAll, beforeAll, expect, test } from 'vitest';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools } from '../../support/user.ts';

const user = 100_500;
let service: Service;
let defaults: string[];

beforeAll(async () => {
  service = await Service.start({ settings: systemTools('env', 'sh') });
  defaults = ['PATH=/usr/local/bin:/usr/bin:/bin', 'LANG=C.UTF-8', `HOME=${homeOf(service, user)}`];
});
afterAll(() => service.stop());

/** The tool's environment, in its order. */
const environmentWith = async (env: unknown): Promise<string[]> => {
  const { status, body } = await service.exec(user, 'env', ['-0'], { env });
  expect(status, JSON.stringify(body)).toBe(200);
  return (body.stdout ?? '').split('\0').slice(0, -1);
};

const refused = async (env: unknown): Promise<string> => {
  const { status, body } = await service.exec(user, 'env', [], { env });
  expect([status, body.error], JSON.stringify(env).slice(0, 100)).toEqual([400, 'bad_request']);
  return body.message ?? '';
};

test('absent, null and empty: the three defaults', async () => {
  for (const env of [undefined, null, []]) expect(await environmentWith(env)).toEqual(defaults);
});

test('values arrive unchanged: spaces, quotes, "=", line breaks, nothing at all, Unicode', async () => {
  const given = [
    'A=two words',
    `B='"$HOME"`,
    'C=x=y=z',
    'D=line\nbreak',
    'E=',
    'F=한글😀',
    'G=\u001b',
    '_=underscore',
    'a1_Z=case',
  ];
  expect(await environmentWith(given)).toEqual([...defaults, ...given]);
});

test('a request’s PATH, HOME and LANG win over the defaults', async () => {
  const given = ['PATH=/nowhere', 'HOME=/elsewhere', 'LANG=de_DE.UTF-8'];
  expect((await environmentWith(given)).sort()).toEqual(given.toSorted());
});

test('of two entries with one name there is one in the end, the later one', async () => {
  expect(await environmentWith(['TWICE=first', 'ONCE=x', 'TWICE=second'])).toEqual([
    ...defaults,
    'TWICE=second',
    'ONCE=x',
  ]);
});

test('names that begin with EXECX_ are dropped, others that look like it are not', async () => {
  const given = ['EXECX_UID=0', 'EXECX_=x', 'EXECX=kept', 'XEXECX_A=kept', 'execx_a=kept'];
  expect(await environmentWith(given)).toEqual([...defaults, ...given.slice(2)]);
});

test('dropped entries count towards nothing but the number, and are checked like others', async () => {
  await refused(['EXECX_A=with\0NUL']);
  await refused(['EXECX_A']);
});

test('128 entries are taken, 129 are not', async () => {
  const entries = Array.from({ length: 129 }, (_, index) => `V${index}=${index}`);
  expect(await environmentWith(entries.slice(1))).toEqual([...defaults, ...entries.slice(1)]);
  expect(await refused(entries)).toContain('env');
});

test('an entry is NAME=VALUE with a name of letters, digits and underscores, not beginning with a digit', async () => {
  for (const entry of [
    'NOVALUE',
    '=value',
    '1A=x',
    'A-B=x',
    'A B=x',
    ' A=x',
    'A.B=x',
    'É=x',
    'A\n=x',
    '',
    'A\0=x',
    'A=x\0y',
    'A=\ud800',
  ])
    await refused([entry]);
  for (const env of ['A=x', { A: 'x' }, [1], [null], [['A=x']], 7, true]) await refused(env);
});

test('the message names the field and the place, never what was in it', async () => {
  const message = await refused(['GOOD=a-value', 'bad-secret-entry']);
  expect(message).toContain('env[1]');
  expect(message).not.toContain('secret');
});

test('a request’s variables are for its run alone', async () => {
  expect(await environmentWith(['ONLY_ONCE=value'])).toContain('ONLY_ONCE=value');
  expect(await environmentWith([])).toEqual(defaults);
});

test('variables that change how programs load have no effect on the service, only on the tool', async () => {
  const given = [
    'LD_PRELOAD=/nonexistent.so',
    'NODE_OPTIONS=--require=/nonexistent.js',
    'BASH_ENV=/nonexistent',
    'IFS=x',
  ];
  const { status, body } = await service.exec(user, 'env', [], { env: given });
  expect(status).toBe(200);
  for (const entry of given) expect(body.stdout).toContain(entry);
  // The loader of the tool itself says so: the variable was there when it started, and only there.
  expect(body.stderr).toContain('/nonexistent.so');
});
