/*
 * killer.h: ending processes of a user. killer.c is the only file that calls kill().
 *
 * Purpose    Root without CAP_KILL may not signal a user's processes, so a signal is sent as the user: by a killer,
 *            a short-lived child with the ids (K, U, 0), where K = KILLER_UID_FIRST + its own pid.
 *              K real       nobody has it, so no user may signal or trace the killer,
 *                           and the killer does not reach root's processes through its real uid
 *              U effective  reaches exactly the processes of U
 *              0 saved      its user can't reach it through the saved uid either
 *            Why a child and not the caller itself for a moment: whoever has U as effective uid may be put on
 *            SCHED_IDLE by processes of U, for good, and a bomb would then starve it. A starved killer is
 *            replaced; a supervisor that never has that uid can't be starved.
 *            Only when no process can be had for it (a pids limit that this very run fills) does the caller itself
 *            take those ids, for the one call that ends everything of U.
 *            In the same way (K, G, 0), with G the gateway's uid, reaches what runs as the gateway.
 *            What is root's own needs no killer, and is only ever signalled by the pid of an own child, which can't
 *            become somebody else's before it is reaped: a helper that has not dropped, and init's children.
 * Rights     In: uid 0 with CAP_SETUID. A killer that is not exactly (K, U, 0) aborts before it signals:
 *            kill(-1) as root would end the machine.
 * Used by    ending.c, run.c, request.c, end-uid.c, leftovers.c, spawner.c, init.
 * Fails      by doing nothing: a killer that could not start is made up for by the next pass.
 */
#ifndef KILLER_H
#define KILLER_H

#include <stdbool.h>
#include <sys/types.h>

#define KILLERS_MAX 8

enum killer_job {
	KILLER_HUP_GROUP,      /* SIGHUP to the process group `target` */
	KILLER_INT_GROUP,      /* SIGINT to it */
	KILLER_TERM_GROUP,     /* SIGTERM to it */
	KILLER_TERM_TREE,      /* SIGTERM to everything beneath `target`; what is stopped goes on, and takes it */
	KILLER_HANGUP_TREE,    /* the same, and SIGHUP as when a terminal is closed: shells heed only that */
	KILLER_WALK,           /* SIGKILL to everything beneath `target`; with too much beneath it, KILLER_ALL */
	KILLER_CHILDREN,       /* SIGKILL to the children of `target`, and never to anything else of the user's */
	KILLER_LEFTOVERS,      /* SIGKILL to each of the user's processes beneath `target` that no supervisor looks after */
	KILLER_LEFTOVERS_HARD, /* as KILLER_ALL, if the user has no others */
	KILLER_ALL,            /* SIGKILL to every process of the user in one call, atomic against fork */
};

/* The killers that have not been reaped yet. */
struct killers {
	pid_t live[KILLERS_MAX];
};

/* True when the job is under way or done. With KILLERS_MAX alive nothing is done. */
bool killers_start(struct killers *killers, enum killer_job job, uid_t user, pid_t target);
/* Takes a reaped pid off the list; false when it was no killer. */
bool killers_took(struct killers *killers, pid_t reaped);
bool killers_have(const struct killers *killers, pid_t pid);
bool killers_at_work(const struct killers *killers);

/* For init alone: the gateway's uid counts as a user's from here on. */
void killer_also_for(uid_t gateway);
/* SIGKILL to an own child that has not been reaped, if it is root's. */
void kill_own(pid_t pid);
/* The same to each child of this process but its killers. */
void kill_own_children(const struct killers *killers);

#endif
