/*
 * walk.h: everything beneath a process.
 *
 * Purpose    Visits each descendant of a process as the kernel lists them in /proc/<pid>/task/<tid>/children.
 *            Each pid is visited when it is read: collecting first and killing then loses against processes that
 *            fork and exit all the time.
 * Rights     None: those files are readable by all.
 * Used by    killer.c.
 * Fails      by seeing less: the walk is bounded in time and in what it remembers, and processes move while it
 *            looks. It therefore proves nothing; the caller repeats it until wait() says ECHILD.
 */
#ifndef WALK_H
#define WALK_H

#include <stdbool.h>
#include <sys/types.h>

/* Only the direct children. */
void walk_children(pid_t top, void (*visit)(pid_t));
/* False when there was more to see than one walk is good for: it is then not complete. */
bool walk_beneath(pid_t top, void (*visit)(pid_t));

#endif
