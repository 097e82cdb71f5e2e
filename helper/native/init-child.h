/*
 * init-child.h: the worker and the gateway as init sees them.
 *
 * Purpose    Starts one, keeps its channel, and knows when it may be started again.
 * Rights     In: init's. Out: the worker keeps them; the gateway is dropped to its uid, verified, before exec.
 * Used by    init.c.
 * Fails      a child that can't be started counts as one that died at once.
 */
#ifndef INIT_CHILD_H
#define INIT_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
	uid_t uid; /* 0 for the worker */
	gid_t gid;
	const char *node;
	const char *program;
	pid_t pid; /* 0 = not running */
	int channel;
	bool ready; /* it said 'R' */
	int64_t started_us;
	int64_t next_start_us;
	int64_t delay_us;
};

void child_start(struct child *child);
void child_died(struct child *child);
/* Reads what is there. */
void child_listen(struct child *child);
void child_drain(struct child *child);

#endif
