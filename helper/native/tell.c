/*
 * tell.c: asking a tree of processes to end. See tell.h.
 */
#define _GNU_SOURCE
#include "tell.h"

#include <signal.h>

#include "walk.h"

/* With the time of a walk less than the shortest grace of a process. */
#define WALKS_MAX 16
#define TOLD_MAX 256

static pid_t told[TOLD_MAX];
static int told_count;
static bool hang_up_too;

/* A second SIGTERM would be an order to many: to leave as they are. */
static bool is_told(pid_t pid)
{
	for (int i = 0; i < told_count; i++) {
		if (told[i] == pid)
			return true;
	}
	return false;
}

static void tell(pid_t pid)
{
	if (told_count == TOLD_MAX || is_told(pid))
		return;
	told[told_count++] = pid;
	if (hang_up_too)
		kill(pid, SIGHUP);
	kill(pid, SIGTERM);
	kill(pid, SIGCONT);
}

void tell_beneath(pid_t top, bool hang_up)
{
	hang_up_too = hang_up;
	/* Whoever is told may be gone before its children are read: they are children of `top` then, whose list was
	 * read before. So again, until a whole walk meets nobody new. */
	for (int walks = 0; walks < WALKS_MAX; walks++) {
		int before = told_count;

		if (walk_beneath(top, tell) && told_count == before)
			return;
	}
}
