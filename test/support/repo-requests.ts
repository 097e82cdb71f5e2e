import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { type GitScene, type RepoRoute, refusal, type Work } from './git-scene.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Every repo route. */
export const repoRoutes: readonly RepoRoute[] = ['clone', 'worktree', 'push', 'agent-worktree', 'agent-push'];

/** Fields that would do for a route. */
export const fieldsFor = (scene: GitScene, { user, project, conversation }: Work, route: RepoRoute): Fields => {
  if (route === 'clone') return { user, url: scene.server.url('group/other.git') };
  const id = route.startsWith('agent')
    ? { id: randomUUID() }
    : { conversation: route === 'push' ? conversation : randomUUID() };
  return { user, project, ...id, ...(route.endsWith('worktree') ? { baseBranch: 'main' } : {}) };
};

/** Asks each of these routes, and expects a refusal, before git is asked anything. */
export const expectRefused = async (
  scene: GitScene,
  work: Work,
  routes: readonly RepoRoute[],
  more: Fields,
  code: string,
): Promise<void> => {
  const [asked, pushed] = [scene.server.seen.length, work.repository.pushed().length];
  for (const route of routes) {
    const answer = await scene.ask(route, { ...fieldsFor(scene, work, route), ...more });
    expect(refusal(answer), `${route} ${JSON.stringify(more).slice(0, 120)}`).toEqual([400, code]);
    for (const value of Object.values(more).flat())
      for (const part of String(value).split('=')) if (part.length > 12) expect(answer.text).not.toContain(part);
  }
  expect(scene.server.seen).toHaveLength(asked);
  expect(work.repository.pushed()).toHaveLength(pushed);
};
