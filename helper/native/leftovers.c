/*
 * leftovers.c: users' processes that no supervisor looks after. See leftovers.h.
 */
#define _GNU_SOURCE
#include "leftovers.h"

#include <stddef.h>

#include "processes.h"

/* Longer than any chain of processes can be; a chain that changes while it is read could seem to have no end. */
#define ANCESTORS_MAX 65536

struct search {
	uid_t user; /* 0 = take the first that has one */
	bool found;
	bool unsure;   /* somebody's parents changed while they were read */
	bool live_run; /* the user also has a process that is no left-over */
	void (*visit)(pid_t);
};

enum owner { LEFT_OVER, LIVE_RUN, GONE, UNSURE };

static enum owner owner_of(const struct process *process)
{
	struct process ancestor = *process, again;

	for (int i = 0; i < ANCESTORS_MAX && ancestor.parent > 0; i++) {
		if (!process_read(ancestor.parent, &ancestor))
			/* A parent died just now and its children have moved. */
			return process_read(process->pid, &again) ? UNSURE : GONE;
		if (is_killer(ancestor.real))
			return LIVE_RUN;
	}
	return LEFT_OVER;
}

static bool look(const struct process *process, void *context)
{
	struct search *search = context;
	uid_t user = process_user(process);

	/* A zombie can't do anything, and its parent may be nobody's business. */
	if (user == 0 || process->zombie || (search->user != 0 && user != search->user))
		return true;

	enum owner owner = owner_of(process);

	if (owner != LEFT_OVER) {
		search->live_run |= owner == LIVE_RUN && user == search->user;
		search->unsure |= owner == UNSURE;
		return true;
	}
	if (search->user == 0)
		search->user = user;
	search->found = true;
	if (search->visit != NULL)
		search->visit(process->pid);
	return true;
}

void leftovers_of(uid_t user, void (*visit)(pid_t))
{
	struct search search = {.user = user, .visit = visit};

	processes_each(look, &search);
}

bool leftovers_end(struct killers *killers, bool hard)
{
	struct search first = {.user = 0};

	if (processes_each(look, &first) != 0)
		return true; /* who can't look can't say that there are none */
	if (!first.found)
		return first.unsure;

	struct search all = {.user = first.user};

	processes_each(look, &all);
	killers_start(killers, hard && !all.live_run && !all.unsure ? KILLER_ALL : KILLER_LEFTOVERS, first.user, 0);
	return true;
}
