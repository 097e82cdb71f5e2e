import { chownSync, existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attack, native, Spawner, sanitized } from '../../support/spawner-client.ts';

const uid = 900_501;
const other = 900_502;

describe.each([
  ['release', native],
  ['sanitized', sanitized],
])('what a run leaves for all to see, %s', (_name, program) => {
  let spawner: Spawner;
  let kept: string;
  beforeAll(async () => {
    spawner = await Spawner.start({ program });
    spawner.makeSpace(uid);
    spawner.makeSpace(other);
    // Of an earlier run of this test that was broken off.
    for (const path of [`/tmp/left-${uid}`, `/tmp/link-${uid}`, `/dev/shm/left-${uid}`])
      rmSync(path, { recursive: true, force: true });
    kept = mkdtempSync('/tmp/kept-');
    writeFileSync(join(kept, 'file'), 'kept');
  });
  afterAll(async () => {
    rmSync(kept, { recursive: true });
    await spawner.stop();
  });

  const leftBy = (user: number): string[] =>
    ['/tmp', '/dev/shm'].flatMap((folder) =>
      readdirSync(folder)
        .map((name) => join(folder, name))
        .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.uid === user),
    );

  test('is removed: folders, a folder of mode 000, links, shared memory; nothing that a link points to', async () => {
    const own = join(spawner.spaceOf(uid), 'home');
    writeFileSync(join(own, 'mine'), 'mine');
    chownSync(join(own, 'mine'), uid, uid);
    for (const target of [own, kept]) {
      const { stdout, exit } = await spawner.run({ uid, args: [attack, 'leave-files', target] });
      expect([stdout.toString(), exit?.code]).toEqual(['set\n', 0]);
      expect(leftBy(uid)).toEqual([]);
    }
    expect(existsSync(join(own, 'mine'))).toBe(true);
    expect(readdirSync(kept)).toEqual(['file']);
  });

  test('another user\u2019s stays', async () => {
    const path = `/tmp/other-${process.pid}`;
    writeFileSync(path, '', { mode: 0o666 });
    chownSync(path, other, other);
    await spawner.run({ uid, args: [attack, 'leave-files', path] });
    expect(leftBy(other)).toEqual([path]);
    expect((await spawner.run({ uid: other, args: ['/bin/true'] })).exit?.code).toBe(0);
    expect(leftBy(other)).toEqual([]);
  });
});
