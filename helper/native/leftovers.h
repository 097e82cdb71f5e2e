/*
 * leftovers.h: users' processes that no supervisor looks after.
 *
 * Purpose    Before a worker starts, nothing of an earlier life may still run in a user's space. A process of a user
 *            is a left-over when no live supervisor (real uid K) is among its ancestors: another instance's runs on
 *            the same machine are not.
 * Rights     In: root with CAP_SETUID. Kills are made by killers.
 * Used by    init.c, killer.c.
 * Fails      by counting what is left; the caller goes on until that is 0.
 */
#ifndef LEFTOVERS_H
#define LEFTOVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "killer.h"

/* Starts a killer for one user's left-overs, if there are any; with `hard` in one call that no fork escapes,
 * unless that user also has a live run. Returns false when there are none. */
bool leftovers_end(struct killers *killers, bool hard);
/* Visits the left-overs of one user. */
void leftovers_of(uid_t user, void (*visit)(pid_t));

#endif
