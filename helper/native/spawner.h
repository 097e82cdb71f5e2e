/*
 * spawner.h: accepts the worker's connections and forks a supervisor for each.
 *
 * Purpose    Small and resident, so that a fork costs little however large the worker is. It reads nothing of a
 *            connection itself.
 * Rights     In: root with exactly CAP_CHOWN, CAP_SETGID, CAP_SETUID; anything else is refused. Out: its
 *            supervisors' (K, 0, 0).
 * Used by    the worker, once: `spawner <socket path> <lock path>`, detached. Descriptor 0 is the lifeline: its end
 *            of file means that the worker is gone. Descriptor 1 gets "ready\n" once. Descriptor 2 is the log.
 * Fails      with exit status 1 and one sentence before it is ready. Afterwards it ends when the worker is gone,
 *            with status 0, and only when no child of it is left.
 */
#ifndef SPAWNER_H
#define SPAWNER_H

int spawner_main(const char *socket_path, const char *lock_path);

#endif
