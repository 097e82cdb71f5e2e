/*
 * init-way.c: nothing of the last worker may be left when the next one starts. See init-way.h.
 */
#define _GNU_SOURCE
#include "init-way.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "leftovers.h"
#include "processes.h"
#include "say.h"

#define CLEAR_LIMIT_US 10000000
#define HARD_AFTER_US 200000

static int64_t blocked_since; /* when the way was first found blocked; 0 = it is not */
static bool told;

/* What a dead worker left comes to init: its spawner, supervisors that still end their runs, and runs that nobody looks
 * after. Whatever else comes (somebody's shell in the container) is no business of the service. */
struct rest {
	struct process self;
	bool found;
	bool kill;
};

static bool look_at_rest(const struct process *process, void *context)
{
	struct rest *rest = context;

	bool is_root = is_killer(process->real) || (process->real == 0 && strcmp(process->name, rest->self.name) == 0);

	if (process->parent != rest->self.pid || (!is_root && process_user(process) == 0))
		return true;
	rest->found = true;
	if (rest->kill && is_root)
		kill_own(process->pid);
	return true;
}

static bool rest_is_left(bool kill)
{
	struct rest rest = {.kill = kill};

	return !process_read(getpid(), &rest.self) || processes_each(look_at_rest, &rest) != 0 || rest.found;
}

/* A process that runs as the gateway: beneath init, not beneath another instance of the service. */
struct stray {
	uid_t gateway;
	bool found;
};

static bool look_for_stray(const struct process *process, void *context)
{
	struct stray *stray = context;
	struct process ancestor = *process;

	if (process->real != stray->gateway && process->effective != stray->gateway && process->saved != stray->gateway)
		return true;
	while (!stray->found && process_read(ancestor.parent, &ancestor))
		stray->found = ancestor.pid == getpid();
	return !stray->found;
}

bool init_gateway_is_gone(struct killers *killers, uid_t gateway)
{
	struct stray stray = {.gateway = gateway};

	if (processes_each(look_for_stray, &stray) == 0 && !stray.found)
		return true;
	killers_start(killers, KILLER_WALK, gateway, getpid());
	return false;
}

bool init_way_is_clear(struct killers *killers)
{
	int64_t now = now_us();
	int64_t blocked = blocked_since == 0 ? 0 : now - blocked_since;

	/* Supervisors of the last life end their own runs and are given time; whom nobody looks after is ended at once. */
	bool rest = rest_is_left(blocked > CLEAR_LIMIT_US);
	bool over = leftovers_end(killers, getpid(), blocked > HARD_AFTER_US) ||
		    leftovers_end(killers, LEFTOVERS_ANYWHERE, blocked > HARD_AFTER_US);

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
