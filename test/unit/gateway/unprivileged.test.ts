import { describe, expect, test } from 'vitest';
import { excessOfRights } from '../../../gateway/unprivileged.ts';

const status = {
  Name: 'node',
  Uid: '19999\t19999\t19999\t19999',
  Gid: '19999\t19999\t19999\t19999',
  Groups: ' ',
  NoNewPrivs: '1',
  CapInh: '0000000000000000',
  CapPrm: '0000000000000000',
  CapEff: '0000000000000000',
  CapBnd: '000001ffffffffff',
  CapAmb: '0000000000000000',
};

const textOf = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name}:\t${value}\n`)
    .join('');

describe('rights', () => {
  test('of the gateway are in order', () => {
    expect(excessOfRights(textOf(status))).toBeUndefined();
  });

  test.each([
    ['Uid', '0\t0\t0\t0', 'uid'],
    ['Uid', '19999\t0\t19999\t19999', 'uid'],
    ['Uid', '19999\t19999\t0\t19999', 'uid'],
    ['Uid', '19999\t19999\t19999\t0', 'uid'],
    ['Uid', '19999\t19999\t19998\t19999', 'uid'],
    ['Uid', '19999\t19999\t19999', 'uid'],
    ['Gid', '19999\t19999\t19999\t0', 'gid'],
    ['Gid', '0\t0\t0\t0', 'gid'],
    ['Groups', '0 ', 'groups'],
    ['Groups', '19999 ', 'groups'],
    ['CapInh', '0000000000000001', 'CapInh'],
    ['CapPrm', '0000000000000080', 'CapPrm'],
    ['CapEff', '00000000a80425fb', 'CapEff'],
    ['CapAmb', '8000000000000000', 'CapAmb'],
    ['NoNewPrivs', '0', 'no_new_privs'],
  ])('with %s %j are too many', (field, value, named) => {
    expect(excessOfRights(textOf({ ...status, [field]: value }))).toContain(named);
  });

  test.each(['Uid', 'Gid', 'Groups', 'CapInh', 'CapPrm', 'CapEff', 'CapAmb', 'NoNewPrivs'])(
    'that do not show %s are not proven',
    (field) => {
      const shown = Object.fromEntries(Object.entries(status).filter(([name]) => name !== field));
      expect(excessOfRights(textOf(shown))).toBeDefined();
    },
  );
});
