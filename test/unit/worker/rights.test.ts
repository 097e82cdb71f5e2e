import { describe, expect, it } from 'vitest';
import { wrongRights } from '../../../worker/rights.ts';

const fields = {
  Name: 'node',
  Uid: '0\t0\t0\t0',
  Gid: '0\t0\t0\t0',
  CapInh: '0000000000000000',
  CapPrm: '00000000000000c1',
  CapEff: '00000000000000c1',
  CapBnd: '00000000000000c1',
  CapAmb: '0000000000000000',
  NoNewPrivs: '1',
  Seccomp: '0',
};

const status = (changes: Partial<typeof fields> = {}): string =>
  Object.entries({ ...fields, ...changes })
    .map(([name, value]) => `${name}:\t${value}\n`)
    .join('');

const bit = (number: bigint): string => (0xc1n ^ (1n << number)).toString(16).padStart(16, '0');

describe('the rights that the worker starts with', () => {
  it('are right when they are exactly those of the design', () => {
    expect(wrongRights(status())).toBeUndefined();
  });

  const ids = ['1\t0\t0\t0', '0\t1\t0\t0', '0\t0\t1\t0', '0\t0\t0\t1', '20001\t20001\t20001\t20001', '0\t0\t0', ''];
  it.each(ids)('are wrong with the uids %j', (Uid) => {
    expect(wrongRights(status({ Uid }))).toMatch(/must run as root/);
  });

  for (const set of ['CapEff', 'CapPrm'] as const) {
    it.each(Array.from({ length: 41 }, (_unused, number) => number))(
      `are wrong when ${set} differs in capability %i alone`,
      (number) => {
        expect(wrongRights(status({ [set]: bit(BigInt(number)) }))).toMatch(
          new RegExp(`exactly CAP_SETUID, CAP_SETGID and CAP_CHOWN \\(${set} differs\\)`),
        );
      },
    );
  }

  for (const set of ['CapInh', 'CapAmb'] as const) {
    it(`are wrong when ${set} holds anything`, () => {
      for (const number of [0n, 6n, 7n, 5n, 40n]) {
        const held = (1n << number).toString(16).padStart(16, '0');
        expect(wrongRights(status({ [set]: held }))).toMatch(new RegExp(`\\(${set}\\)`));
      }
    });
  }

  it.each(['0', '', '10'])('are wrong with NoNewPrivs %j', (NoNewPrivs) => {
    expect(wrongRights(status({ NoNewPrivs }))).toMatch(/no_new_privs/);
  });

  it('a process cannot pass by its name', () => {
    // /proc escapes line breaks in Name, and the fields are looked for at the start of a line.
    const named = status({ Name: 'CapEff: 00000000000000c1', CapEff: '000001ffffffffff' });
    expect(wrongRights(named)).toMatch(/CapEff differs/);
  });

  it('are told in one sentence', () => {
    for (const text of [status({ Uid: '1\t1\t1\t1' }), status({ CapEff: bit(5n) }), status({ NoNewPrivs: '0' })]) {
      expect(wrongRights(text)).toMatch(/^[A-Z][^\n]*\.$/);
    }
  });
});
