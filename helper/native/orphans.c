/*
 * orphans.c: what a dead supervisor left. See orphans.h.
 */
#define _GNU_SOURCE
#include "orphans.h"

#include <unistd.h>

#include "end-uid.h"
#include "processes.h"
#include "supervisor.h"

#define ENDERS_MAX 64

static struct ender {
	pid_t pid;
	uid_t user;
} enders[ENDERS_MAX];

struct search {
	pid_t self;
	bool (*is_own)(pid_t);
	bool found;
};

static bool is_ender(pid_t pid)
{
	for (int i = 0; i < ENDERS_MAX; i++) {
		if (enders[i].pid == pid)
			return true;
	}
	return false;
}

static void start_ender(uid_t user)
{
	struct ender *unused = NULL;

	for (int i = 0; i < ENDERS_MAX; i++) {
		if (enders[i].pid != 0 && enders[i].user == user)
			return;
		if (enders[i].pid == 0)
			unused = &enders[i];
	}
	if (unused == NULL)
		return;

	pid_t pid = fork();

	if (pid == 0)
		_exit(supervisor_become() && end_uid(user, -1, -1) ? 0 : 1);
	if (pid > 0)
		*unused = (struct ender){.pid = pid, .user = user};
}

static bool look(const struct process *process, void *context)
{
	struct search *search = context;

	if (process->parent != search->self || search->is_own(process->pid) || is_ender(process->pid))
		return true;
	/* Also a launch that has not dropped yet, still with its dead supervisor's uid: it will be a user's soon. */
	search->found = true;
	if (process_user(process) != 0 && !process->zombie)
		start_ender(process_user(process));
	return true;
}

bool orphans_end(bool (*is_own)(pid_t))
{
	struct search search = {.self = getpid(), .is_own = is_own};

	return processes_each(look, &search) != 0 || search.found;
}

bool orphans_took(pid_t reaped)
{
	for (int i = 0; i < ENDERS_MAX; i++) {
		if (enders[i].pid == reaped) {
			enders[i].pid = 0;
			return true;
		}
	}
	return false;
}
