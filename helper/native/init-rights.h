/*
 * init-rights.h: down to what the service needs, whatever it was given.
 *
 * Purpose    Development runs with production rights: a machine's root becomes root with three capabilities and
 *            no_new_privs, and can't come back even by exec.
 * Rights     In: root with at least the three. Out: exactly the three.
 * Used by    init.c, first of all.
 * Fails      with false and one sentence.
 */
#ifndef INIT_RIGHTS_H
#define INIT_RIGHTS_H

#include <stdbool.h>

bool init_rights(void);
/* The gateway's uid or gid: a number that is neither root's nor a user's nor a killer's. */
bool init_read_id(const char *text, unsigned *id);

#endif
