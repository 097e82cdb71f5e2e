/*
 * killer.c: ending processes of a user. See killer.h.
 */
#define _GNU_SOURCE
#include "killer.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leftovers.h"
#include "walk.h"
#include "wire.h"

/* Ends here unless this process is exactly (K, U, 0), with K its own and U a user. */
static void be_killer_of(uid_t user)
{
	uid_t killer = KILLER_UID_FIRST + (uid_t)getpid();
	uid_t ruid, euid, suid;

	if (user < USER_UID_FIRST || user > USER_UID_LAST)
		abort();
	if (setresuid(killer, user, 0) != 0)
		_exit(1);
	if (getresuid(&ruid, &euid, &suid) != 0 || ruid != killer || euid != user || suid != 0)
		abort();
}

static void kill_one(pid_t pid)
{
	if (pid > 1)
		kill(pid, SIGKILL);
}

static _Noreturn void killer_main(enum killer_job job, uid_t user, pid_t target)
{
	/* A killer that is starved must not hold the connection, the pipes or the lock meanwhile. */
	close_range(3, ~0U, 0);
	be_killer_of(user);
	switch (job) {
	case KILLER_TERM_GROUP:
		if (target > 1)
			kill(-target, SIGTERM);
		break;
	case KILLER_WALK:
		/* Many processes leave little processor time to whoever ends them; so what a walk can't do is done
		 * at once, by the process that has its turn now. */
		if (!walk_beneath(target, kill_one))
			kill(-1, SIGKILL);
		break;
	case KILLER_LEFTOVERS:
		leftovers_of(user, target, kill_one);
		break;
	case KILLER_LEFTOVERS_HARD:
		/* Looked at from here, with the user's uid already: an ender waits for killers that it sees, so that
		 * no new run can have started for which this would be meant. */
		if (leftovers_alone(user, target))
			kill(-1, SIGKILL);
		else
			leftovers_of(user, target, kill_one);
		break;
	case KILLER_ALL:
		kill(-1, SIGKILL);
		break;
	}
	_exit(0);
}

bool killers_start(struct killers *killers, enum killer_job job, uid_t user, pid_t target)
{
	for (int i = 0; i < KILLERS_MAX; i++) {
		if (killers->live[i] != 0)
			continue;

		pid_t pid = fork();

		if (pid == 0)
			killer_main(job, user, target);
		if (pid < 0)
			return false;
		killers->live[i] = pid;
		return true;
	}
	return false;
}

bool killers_took(struct killers *killers, pid_t reaped)
{
	for (int i = 0; i < KILLERS_MAX; i++) {
		if (killers->live[i] == reaped) {
			killers->live[i] = 0;
			return true;
		}
	}
	return false;
}

bool killers_at_work(const struct killers *killers)
{
	for (int i = 0; i < KILLERS_MAX; i++) {
		if (killers->live[i] != 0)
			return true;
	}
	return false;
}

void kill_own(pid_t pid, int signal)
{
	if (pid > 1)
		kill(pid, signal);
}

void kill_gateway(pid_t pid, uid_t gateway)
{
	if (pid <= 1 || gateway == 0)
		return;

	pid_t child = fork();

	if (child == 0) {
		close_range(3, ~0U, 0);
		if (setresuid(gateway, gateway, gateway) == 0)
			kill(pid, SIGKILL);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}
