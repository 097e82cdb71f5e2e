/*
 * leftovers.c: users' processes that no supervisor looks after. See leftovers.h.
 */
#define _GNU_SOURCE
#include "leftovers.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include "processes.h"

static const char *work_dir = "/work";

void leftovers_work_dir(const char *path)
{
	work_dir = path;
}

/* Only this service makes such a folder: root's work dir lets nobody else make names in it. */
static bool has_space(uid_t user)
{
	char path[PATH_MAX];
	struct stat st;
	int length = snprintf(path, sizeof path, "%s/u%u", work_dir, user);

	/* A space that can't be looked at, for whatever reason, counts as one only if its name fits and it is there. */
	return length > 0 && (size_t)length < sizeof path && lstat(path, &st) == 0 && st.st_uid == user;
}

/* Longer than any chain of processes can be; a chain that changes while it is read could seem to have no end. */
#define ANCESTORS_MAX 65536

struct search {
	uid_t user; /* 0 = take the first that has one */
	pid_t top;
	bool found;
	bool unsure;   /* somebody's parents changed while they were read */
	bool live_run; /* the user also has a process that is no left-over */
	void (*visit)(pid_t);
};

enum owner { LEFT_OVER, LIVE_RUN, ELSEWHERE, UNSURE };

static enum owner owner_of(const struct process *process, pid_t top)
{
	bool beneath = top == LEFTOVERS_ANYWHERE;
	struct process ancestor = *process, again;

	for (int i = 0; i < ANCESTORS_MAX && ancestor.parent > 0; i++) {
		if (!process_read(ancestor.parent, &ancestor))
			/* A parent died just now and its children have moved. */
			return process_read(process->pid, &again) ? UNSURE : ELSEWHERE;
		if (is_killer(ancestor.real))
			return LIVE_RUN;
		beneath |= ancestor.pid == top;
	}
	return beneath ? LEFT_OVER : ELSEWHERE;
}

static bool look(const struct process *process, void *context)
{
	struct search *search = context;
	uid_t user = process_user(process);

	/* A zombie can't do anything, and its parent may be nobody's business. */
	if (user == 0 || process->zombie || (search->user != 0 && user != search->user))
		return true;
	if (search->top == LEFTOVERS_ANYWHERE && !has_space(user))
		return true;

	enum owner owner = owner_of(process, search->top);

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

static bool search_all(struct search *search)
{
	if (processes_each(look, search) != 0)
		search->unsure = true; /* who can't look can't say that there are none */
	return search->found || search->unsure;
}

void leftovers_of(uid_t user, pid_t top, void (*visit)(pid_t))
{
	struct search search = {.user = user, .top = top, .visit = visit};

	search_all(&search);
}

bool leftovers_alone(uid_t user, pid_t top)
{
	struct search search = {.user = user, .top = top};

	search_all(&search);
	return search.found && !search.live_run && !search.unsure;
}

bool leftovers_end(struct killers *killers, pid_t top, bool hard)
{
	struct search search = {.user = 0, .top = top};

	if (!search_all(&search))
		return false;
	if (search.found)
		killers_start(killers, hard ? KILLER_LEFTOVERS_HARD : KILLER_LEFTOVERS, search.user, top);
	return true;
}
