/*
 * killer.c: ending processes of a user. See killer.h.
 */
#define _GNU_SOURCE
#include "killer.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "leftovers.h"
#include "tell.h"
#include "walk.h"
#include "wire.h"

static uid_t gateway_uid; /* 0 = this process has nothing to do with the gateway */
static const struct killers *spared;

static bool ids_are(uid_t real, uid_t effective, uid_t saved)
{
	uid_t ruid, euid, suid;

	return getresuid(&ruid, &euid, &suid) == 0 && ruid == real && euid == effective && suid == saved;
}

/* False when the ids can't be taken. Ends here unless this process is then exactly (K, U, 0), with K its own and U a
 * user. */
static bool be_killer_of(uid_t user)
{
	uid_t killer = KILLER_UID_FIRST + (uid_t)getpid();

	if ((user < USER_UID_FIRST || user > USER_UID_LAST) && (user == 0 || user != gateway_uid))
		abort();
	if (setresuid(killer, user, 0) != 0)
		return false;
	if (!ids_are(killer, user, 0))
		abort();
	return true;
}

/* Not by a process of its own, but by this one, which then takes its own ids back or ends. */
static bool kill_all_from_here(uid_t user)
{
	uid_t own, euid, suid;

	if (getresuid(&own, &euid, &suid) != 0 || euid != 0 || suid != 0 || !be_killer_of(user))
		return false;
	kill(-1, SIGKILL);
	if (setresuid(own, 0, 0) != 0 || !ids_are(own, 0, 0))
		abort();
	return true;
}

static void kill_one(pid_t pid)
{
	if (pid > 1)
		kill(pid, SIGKILL);
}

static void signal_group(pid_t group, int sig)
{
	if (group > 1)
		kill(-group, sig);
}

static _Noreturn void killer_main(enum killer_job job, uid_t user, pid_t target)
{
	/* A killer that is starved must not hold the connection, the pipes or the lock meanwhile. */
	close_range(3, ~0U, 0);
	if (!be_killer_of(user))
		_exit(1);
	switch (job) {
	case KILLER_HUP_GROUP:
		signal_group(target, SIGHUP);
		break;
	case KILLER_INT_GROUP:
		signal_group(target, SIGINT);
		break;
	case KILLER_TERM_GROUP:
		signal_group(target, SIGTERM);
		break;
	case KILLER_TERM_TREE:
		tell_beneath(target, false);
		break;
	case KILLER_HANGUP_TREE:
		tell_beneath(target, true);
		break;
	case KILLER_WALK:
		/* Many processes leave little processor time to whoever ends them; so what a walk can't do is done
		 * at once, by the process that has its turn now. */
		if (!walk_beneath(target, kill_one))
			kill(-1, SIGKILL);
		break;
	case KILLER_CHILDREN:
		walk_children(target, kill_one);
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
		/* Without a process to be had, a run that took them all could never be ended. */
		if (pid < 0)
			return (job == KILLER_WALK || job == KILLER_ALL) && kill_all_from_here(user);
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

bool killers_have(const struct killers *killers, pid_t pid)
{
	for (int i = 0; i < KILLERS_MAX; i++) {
		if (killers->live[i] == pid)
			return true;
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

void killer_also_for(uid_t gateway)
{
	gateway_uid = gateway;
}

void kill_own(pid_t pid)
{
	kill_one(pid);
}

static void kill_unless_spared(pid_t pid)
{
	if (!killers_have(spared, pid))
		kill_one(pid);
}

void kill_own_children(const struct killers *killers)
{
	spared = killers;
	walk_children(getpid(), kill_unless_spared);
}
