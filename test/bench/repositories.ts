import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { plainGitEnvironment } from '../support/bare-repository.ts';
import { GitServer } from '../support/git-server.ts';
import { Client } from '../support/http.ts';
import type { Effort } from './one-and-many.ts';
import { Product } from './product.ts';
import { median } from './statistics.ts';
import { figure, type Row } from './table.ts';
import { benchUser } from './users.ts';

const files = 400;
const project = 'group__project';

const timed = async (work: () => unknown): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

/** Clone, worktree and push over https, against the git commands that a person would type. */
export const repositories = async ({ turns }: Effort): Promise<Row[]> => {
  const server = await GitServer.start();
  const product = await Product.start(undefined, { RUNNER_ALLOWED_GIT_HOSTS: server.host });
  const client = new Client(product.port, product.token);
  try {
    const names = Array.from({ length: files }, (_, index) => [`folder-${index % 20}/${index}.txt`, `${index}\n`]);
    server.repository('group/project').commit('main', Object.fromEntries(names) as Record<string, string>);
    const [url, env, user] = [server.url('group/project.git'), server.env(), benchUser(0)];
    const variables = Object.fromEntries(env.map((entry) => entry.split('=') as [string, string]));
    // The server lives in this process: it must not wait for git.
    const natively = (args: readonly string[]): Promise<unknown> =>
      promisify(execFile)('git', args, { env: { ...plainGitEnvironment, ...variables } });
    const ask = async (route: string, body: Readonly<Record<string, unknown>>): Promise<void> => {
      const { status, text } = await client.post(`/v1/${route}`, { user, ...body });
      if (status !== 200 || text.includes('"ok":false')) throw new Error(`${route} failed: ${text}`);
    };

    const took = { native: [] as number[], clone: [] as number[], worktree: [] as number[], push: [] as number[] };
    const folder = join(product.folder, 'native');
    for (let turn = 0; turn <= 3 * turns; turn += 1) {
      const conversation = randomUUID();
      const native = await timed(() => natively(['clone', '--depth=1', '--quiet', url, folder]));
      rmSync(folder, { recursive: true });
      const clone = await timed(() => ask('repo/clone', { url, env }));
      const worktree = await timed(() => ask('repo/worktree', { project, conversation, baseBranch: 'main', env }));
      const push = await timed(() => ask('repo/push', { project, conversation, env }));
      for (const path of [`work/${conversation}`, `repos/${project}`]) await ask('files/delete', { path });
      // The first of each pays for what is not there yet.
      if (turn === 0) continue;
      took.native.push(native);
      took.clone.push(clone);
      took.worktree.push(worktree);
      took.push.push(push);
    }
    const line = (what: string, times: readonly number[]): Row => ({
      what,
      figures: [figure('p50', median(times), 'ms'), figure('', median(times) / median(took.native), '×')],
    });
    return [
      { what: `git clone of ${files} files over https, natively`, figures: [figure('p50', median(took.native), 'ms')] },
      line('POST /v1/repo/clone of the same', took.clone),
      line('POST /v1/repo/worktree', took.worktree),
      line('POST /v1/repo/push of a new branch', took.push),
    ];
  } finally {
    client.close();
    await product.stop();
    await server.stop();
  }
};
