import { join } from 'node:path';
import type { Service } from './service.ts';

/** uid = gid of a user, restated. */
export const uidOf = (user: number): number => 20_000 + user;

/** Where a user's space lies. */
export const spaceOf = ({ workDir }: Pick<Service, 'workDir'>, user: number): string =>
  join(workDir, `u${uidOf(user)}`);

/** Where a user's home lies. */
export const homeOf = (service: Pick<Service, 'workDir'>, user: number): string => join(spaceOf(service, user), 'home');

/** Without a quota no space is counted after a run: each process of a user is a run's. */
export const withoutCounts = { RUNNER_USER_QUOTA_BYTES: '0' } as const;

/** Settings that make programs of the system tools of the service, by their names. */
export const systemTools = (...names: readonly string[]): { readonly RUNNER_TOOLS: string } => ({
  RUNNER_TOOLS: names
    .map((name) => `${name}=${name === 'sh' || name === 'cat' ? '/bin' : '/usr/bin'}/${name}`)
    .join(','),
});
