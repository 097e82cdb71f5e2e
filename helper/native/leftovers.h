/*
 * leftovers.h: users' processes that no supervisor looks after.
 *
 * Purpose    Before a worker starts, nothing of an earlier life may still run in a user's space; and when a supervisor
 *            dies, its run comes to the spawner. A process of a user is a left-over when no live supervisor (real
 *            uid K) is among its ancestors: a new run of that user is none, nor are another instance's runs.
 *            Searched for anywhere on the machine, only the uids of users with a space in this work dir count: on a
 *            machine that is not the service's own, the range can hold somebody else's processes.
 * Rights     In: root with CAP_SETUID. Kills are made by killers.
 * Used by    init.c, init-way.c, spawner.c, killer.c.
 * Fails      by counting what is left; the caller goes on until that is 0.
 */
#ifndef LEFTOVERS_H
#define LEFTOVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "killer.h"

#define LEFTOVERS_ANYWHERE 0

/* Where the spaces lie; before any search for left-overs anywhere. */
void leftovers_work_dir(const char *path);
/* Starts a killer for one user's left-overs beneath the process `top`, if there are any. Returns
 * false when there are none. `hard`: not one by one but in one call that no fork escapes; the killer itself decides
 * that, see leftovers_alone(). */
bool leftovers_end(struct killers *killers, pid_t top, bool hard);
/* Visits the left-overs of one user. */
void leftovers_of(uid_t user, pid_t top, void (*visit)(pid_t));
/* Whether all that the user has are left-overs, and there are some. */
bool leftovers_alone(uid_t user, pid_t top);

#endif
