import { expect, test } from 'vitest';
import { type HostTexts, hostProblems, readHost } from '../../../deploy/host.ts';

const sound: HostTexts = {
  uidMap: '         0          0 4294967295',
  gidMap: '         0          0 4294967295',
  suidDumpable: '0',
  pidMax: '4194304',
  mountInfo: '24 1 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw',
};

test('this machine and a plain container are sound', () => {
  expect(hostProblems(sound)).toEqual([]);
  expect(hostProblems(readHost())).toEqual([]);
});

test.each<[string, Partial<HostTexts>, RegExp]>([
  ['a remapped namespace that ends before the users’', { uidMap: '0 100000 65536' }, /uids and gids 0 to 1020000/],
  ['gids alone', { gidMap: '0 100000 65536' }, /uids and gids/],
  ['users are mapped, supervisors are not', { uidMap: '0 0 2000000' }, /from 1073741824 on/],
  ['the last pid’s supervisor is not mapped', { uidMap: `0 0 ${0x40000000 + 4194304}` }, /from 1073741824 on/],
  ['dropped processes can be read', { suidDumpable: '1' }, /suid_dumpable/],
  ['hidepid=2', { mountInfo: `${sound.mountInfo},hidepid=2` }, /hidepid/],
  ['hidepid=invisible', { mountInfo: `${sound.mountInfo},hidepid=invisible` }, /hidepid/],
])('%s is a problem', (_name, change, sentence) => {
  expect(hostProblems({ ...sound, ...change }).join('\n')).toMatch(sentence);
});

test('hidepid=0 and suid_dumpable=2 are fine', () => {
  expect(hostProblems({ ...sound, suidDumpable: '2', mountInfo: `${sound.mountInfo},hidepid=0` })).toEqual([]);
});
