import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestProcess } from '../../support/process-client.ts';
import { processesOf } from '../../support/processes.ts';
import { Service } from '../../support/service.ts';
import { homeOf, systemTools, uidOf } from '../../support/user.ts';
import { eventually } from '../../support/wait.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start({ settings: systemTools('sh', 'less', 'top') });
});
afterAll(() => service.stop());

let lastUser = 3_600;
const newUser = (): number => lastUser++;
const onTerminal = (user: number, tool: string, args: readonly string[], folder = ''): Promise<TestProcess> =>
  TestProcess.start(service.client, folder === '' ? user : `${user}:${folder}`, tool, args, true);
/** Prepares a user's home. */
const prepare = async (user: number, script: string): Promise<void> => {
  const { body } = await service.exec(user, 'sh', ['-ec', script]);
  expect(body).toMatchObject({ exitCode: 0, stderr: '' });
};
const sleeperOf = (user: number) => processesOf(uidOf(user)).find(({ command }) => command === 'sleep 1000');

test('an interactive shell: its state, stopping and going on with a job, Ctrl-D', async () => {
  const user = newUser();
  const shell = await onTerminal(user, 'sh', ['-i']);
  await shell.said('$ ');
  await shell.answer('n=20\n', '$ ');
  await shell.answer('echo "is" $((n + 1))\n', /is 21\r\n\$ /);
  await shell.write('sleep 1000\n');
  await eventually('the job', () => sleeperOf(user)?.state === 'S');
  await shell.answer('\x1a', '$ ');
  expect(sleeperOf(user)?.state).toBe('T');
  await shell.answer('jobs\n', /\[1\] \+ \S+ +sleep 1000\r\n\$ /);
  await shell.write('fg\n');
  await eventually('the job goes on', () => sleeperOf(user)?.state === 'S');
  await shell.answer('\x03', '$ ');
  expect(sleeperOf(user)).toBeUndefined();
  await shell.write('sleep 1000 &\n');
  await eventually('another job', () => sleeperOf(user));
  await shell.answer('sh -c "exit 6"\n', '$ ');
  await shell.write('', { eof: true });
  expect(await shell.ended()).toMatchObject({ reason: 'exit', exitCode: 6, signal: null });
  expect(processesOf(uidOf(user))).toEqual([]);
});

test('git add -p: a hunk is taken', async () => {
  const user = newUser();
  await prepare(user, 'git init -q r; cd r; echo 1 >f; git add f; echo 2 >>f');
  const add = await onTerminal(user, 'git', ['add', '-p'], 'r');
  await add.said('Stage this hunk');
  await add.write('y\n');
  expect(await add.ended()).toMatchObject({ exitCode: 0 });
  expect((await service.exec(user, 'git', ['show', ':f'], { dir: 'r' })).body.stdout).toBe('1\n2\n');
});

test('git rebase -i: both of its editors are answered', async () => {
  const user = newUser();
  await prepare(
    user,
    `git init -q r; cd r; git config user.email a@b.c; git config user.name n
     for n in 1 2 3; do echo $n >file$n; git add .; git commit -qm commit$n; done`,
  );
  const editors = ['-c', 'sequence.editor=ed', '-c', 'core.editor=ed'];
  const rebase = await onTerminal(user, 'git', [...editors, 'rebase', '-i', '--root'], 'r');
  // ed says how many bytes it has read, and waits.
  await rebase.said(/\d+\r\n$/);
  await rebase.answer('1,3p\n', /pick \w+ commit1\r\npick \w+ commit2\r\npick \w+ commit3\r\n/);
  await rebase.answer('2s/pick/drop/\n3s/pick/reword/\nw\n', /\d+\r\n$/);
  await rebase.answer('q\n', /\d+\r\n$/);
  await rebase.answer('1p\n', 'commit3\r\n');
  await rebase.answer('1s/.*/reworded/\nw\n', /\d+\r\n$/);
  await rebase.write('q\n');
  expect(await rebase.ended()).toMatchObject({ reason: 'exit', exitCode: 0 });
  const { body } = await service.exec(user, 'sh', ['-c', 'git log --format=%s && ls && git status --short'], {
    dir: 'r',
  });
  expect(body).toMatchObject({ exitCode: 0, stdout: 'reworded\ncommit1\nfile1\nfile3\n' });
});

test('less: a page for a key, fewer lines on a smaller terminal, the end', async () => {
  const user = newUser();
  await prepare(user, 'seq -f "line %g." 200 >lines');
  const less = await onTerminal(user, 'less', ['lines']);
  // The last row is the prompt's.
  await less.said('line 23.');
  await less.said(/lines\x1b\[27m/);
  expect(less.output).toContain('\x1b[?1049h');
  expect(less.output).not.toContain('line 24.');
  await less.answer(' ', 'line 46.');
  expect(less.output).not.toContain('line 47.');
  less.output = '';
  expect((await less.ask('resize', { rows: 11, cols: 80 })).status).toBe(200);
  await less.said('line 33.');
  expect(less.output).not.toContain('line 46.');
  await less.answer('/line 150\n', 'line 159.');
  await less.write('q');
  expect(await less.ended()).toMatchObject({ reason: 'exit', exitCode: 0 });
  expect(less.output).toContain('\x1b[?1049l');
});

test('top: a full screen, painted again by itself, until a key', async () => {
  const user = newUser();
  const top = await onTerminal(user, 'top', ['-d', '0.3', '-u', String(uidOf(user))]);
  // What it shows of itself on its first screen; afterwards it paints what has changed.
  await top.said(/\x1b\[H[\s\S]*top - [\s\S]* PID [\s\S]* top +\x1b/);
  for (let frame = 0; frame < 3; frame += 1) {
    top.output = '';
    await top.said('\x1b[H');
  }
  await top.write('q');
  expect(await top.ended()).toMatchObject({ reason: 'exit', exitCode: 0 });
});

test('a password is asked for and not shown', async () => {
  const user = newUser();
  const secret = randomBytes(12).toString('hex');
  const git = await onTerminal(user, 'sh', ['-c', 'git credential fill >answer; echo "do"ne; read line']);
  await git.write('protocol=https\nhost=example.org\n\n');
  await git.said("Username for 'https://example.org': ");
  await git.write('somebody\n');
  await git.said("Password for 'https://somebody@example.org': ");
  await git.write(`${secret}\n`);
  await git.said('done');
  // What is shown again from here on shows that echo works at all.
  await git.answer('shown\n', 'shown');
  expect(await git.ended()).toMatchObject({ exitCode: 0 });
  expect(readFileSync(join(homeOf(service, user), 'answer'), 'utf8')).toContain(`password=${secret}\n`);
  const all = await git.read({ from: 0 });
  expect(all).toMatchObject({ from: 0, eof: true });
  expect(all.data).toContain('somebody\r\n');
  expect(all.data).not.toContain(secret);
});

/** Writes it all in the largest pieces; a piece that is refused is written again. */
const paste = async (process: TestProcess, data: Buffer, refused: () => void): Promise<void> => {
  for (let at = 0; at < data.length; at += 65_536) {
    const piece = data.subarray(at, at + 65_536).toString('base64');
    await eventually('the piece is taken', async () => {
      const { status, body } = await process.ask('write', { data: piece, encoding: 'base64' });
      if (status === 200) return true;
      expect(body.error).toBe('process_backpressure');
      refused();
      return false;
    });
  }
};

test('a megabyte is pasted to a raw reader that makes it wait, and arrives unchanged', async () => {
  const user = newUser();
  const data = randomBytes(1_000_000);
  const script = 'stty raw -echo; echo ready; until [ -e go ]; do sleep 0.02; done; head -c 1000000 | sha256sum';
  const reader = await onTerminal(user, 'sh', ['-c', script]);
  await reader.said('ready');
  let refusals = 0;
  await paste(reader, data, () => {
    refusals += 1;
    // It reads only when it has made the writer wait.
    if (refusals === 1) writeFileSync(join(homeOf(service, user), 'go'), '');
  });
  expect(refusals).toBeGreaterThan(0);
  await reader.said(createHash('sha256').update(data).digest('hex'));
  expect(await reader.ended()).toMatchObject({ exitCode: 0 });
});
