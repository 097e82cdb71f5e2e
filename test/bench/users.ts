/** The first user number that the bench works for. */
export const benchUserFirst = 200_000;

/** The user of a caller. */
export const benchUser = (caller: number): number => benchUserFirst + caller;

/** and its uid. */
export const benchUid = (caller: number): number => 20_000 + benchUser(caller);
