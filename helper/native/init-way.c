/*
 * init-way.c: nothing of the last worker may be left when the next one starts. See init-way.h.
 */
#define _GNU_SOURCE
#include "init-way.h"

#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "clock.h"
#include "leftovers.h"
#include "processes.h"
#include "say.h"

#define CLEAR_LIMIT_US 10000000
#define HARD_AFTER_US 200000

static int64_t blocked_since; /* when the way was first found blocked; 0 = it is not */
static bool told;

/* What a dead worker left comes to init: its spawner, and supervisors that still end their runs. */
struct rest {
	pid_t self;
	pid_t gateway;
	bool found;
	bool kill;
};

static bool look_at_rest(const struct process *process, void *context)
{
	struct rest *rest = context;

	if (process->parent != rest->self || process->pid == rest->gateway)
		return true;
	rest->found = true;
	if (rest->kill)
		kill_own(process->pid, SIGKILL);
	return true;
}

static bool rest_is_left(pid_t gateway, bool kill)
{
	struct rest rest = {.self = getpid(), .gateway = gateway, .kill = kill};

	return processes_each(look_at_rest, &rest) != 0 || rest.found;
}

bool init_way_is_clear(struct killers *killers, pid_t gateway)
{
	int64_t now = now_us();
	int64_t blocked = blocked_since == 0 ? 0 : now - blocked_since;

	/* Supervisors of the last life end their own runs and are given time; whom nobody looks after is ended at once. */
	bool rest = rest_is_left(gateway, blocked > CLEAR_LIMIT_US);
	bool over = leftovers_end(killers, 1, blocked > HARD_AFTER_US);

	if (!rest && !over) {
		blocked_since = 0;
		told = false;
		return true;
	}
	if (blocked_since == 0)
		blocked_since = now;
	if (blocked > CLEAR_LIMIT_US && !told) {
		told = true;
		say("processes of an earlier life can't be ended; the worker waits for their end");
	}
	return false;
}
