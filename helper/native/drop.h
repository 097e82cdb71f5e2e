/*
 * drop.h: from root to a user, with no way back.
 *
 * Purpose    The one place where a process gives up root for good. Everything that runs as a user or as the
 *            gateway came through here.
 * Rights     In: uid 0 with CAP_SETGID and CAP_SETUID. Out: none at all, and no_new_privs.
 * Used by    launch.c (tools), tmpfiles.c (the cleaner), init-child.c (the gateway).
 * Fails      with the STEP_* that failed and errno. The caller must then _exit: it is in between.
 */
#ifndef DROP_H
#define DROP_H

#include <stdint.h>
#include <sys/types.h>

/* 0, or the step that failed. Async-signal-safe: it runs between fork and exec. */
uint32_t drop_to(uid_t uid, gid_t gid);

#endif
