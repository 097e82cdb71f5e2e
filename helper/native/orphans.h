/*
 * orphans.h: what a dead supervisor left.
 *
 * Purpose    A supervisor that is killed leaves its run to the spawner, the next subreaper. For each user among
 *            these orphans an ender is forked, a child with a supervisor's ids that ends that uid.
 * Rights     The spawner's.
 * Used by    spawner.c.
 * Fails      by saying so: the caller looks again until no orphan is left.
 */
#ifndef ORPHANS_H
#define ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts enders. True while children are left that `is_own` does not know; look again soon. */
bool orphans_end(bool (*is_own)(pid_t));
/* Takes a reaped ender off the list. */
bool orphans_took(pid_t reaped);

#endif
