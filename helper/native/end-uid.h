/*
 * end-uid.h: until no process of a user is left anywhere.
 *
 * Purpose    Ends every process of one uid, whoever its parent is: after a supervisor died, and before a user's
 *            space is taken away. It never claims an end that it did not see: only a scan of /proc that finds
 *            nobody, zombies included, counts.
 * Rights     In: (K, 0, 0) with CAP_SETUID.
 * Used by    supervisor.c (MSG_END).
 * Fails      by going on as long as somebody listens, then false.
 */
#ifndef END_UID_H
#define END_UID_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* While the connection and the spawner's life are open there is no limit; once one is closed, it gives up after
 * END_LIMIT_MS. */
bool end_uid(uid_t user, int connection, int life);

#endif
