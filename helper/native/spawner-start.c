/*
 * spawner-start.c: the spawner's first steps, in security order. See spawner-start.h.
 */
#define _GNU_SOURCE
#include "spawner-start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entrance.h"
#include "rights.h"
#include "say.h"
#include "signals.h"

static bool has_exact_rights(void)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;
	struct rights rights;

	if (getresuid(&ruid, &euid, &suid) != 0 || getresgid(&rgid, &egid, &sgid) != 0 || rights_read(&rights) != 0)
		return false;
	return ruid == 0 && euid == 0 && suid == 0 && rgid == 0 && egid == 0 && sgid == 0 &&
	       rights.effective == RIGHTS_SERVICE && rights.permitted == RIGHTS_SERVICE;
}

static bool has_standard_descriptors(void)
{
	return fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0;
}

/* Ctrl-C and a signal to the worker's group must not reach it. */
static bool has_own_session(void)
{
	return getsid(0) == getpid() || setsid() >= 0;
}

static bool open_rest(struct spawner *spawner)
{
	int life[2];

	if (pipe2(life, O_CLOEXEC) != 0)
		return false;
	spawner->life_read = life[0];
	spawner->life_write = life[1];
	spawner->children = signals_watch_children();
	spawner->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	spawner->worker_end = pidfd_open(spawner->worker, 0);
	return spawner->children >= 0 && spawner->null >= 0 && spawner->worker_end >= 0 &&
	       getppid() == spawner->worker;
}

bool spawner_start(struct spawner *spawner, const char *socket_path, const char *lock_path)
{
	spawner->worker = getppid();
	if (signals_block_all() != 0 || signals_reset_all() != 0) {
		say_errno("signals can't be set", errno);
		return false;
	}
	if (!has_exact_rights()) {
		say("must be root with exactly the capabilities chown, setgid and setuid");
		return false;
	}
	if (rights_keep(RIGHTS_SERVICE) != 0 || setgroups(0, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		say_errno("rights can't be narrowed", errno);
		return false;
	}
	if (!has_standard_descriptors() || !has_own_session() || close_range(3, ~0U, 0) != 0) {
		say("must be started detached, with the descriptors 0, 1 and 2");
		return false;
	}
	umask(077);
	/* Not dumpable: no core with a plan in it, and no look into its memory. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
		say_errno("this process can't be made a subreaper", errno);
		return false;
	}
	spawner->lock = entrance_lock(lock_path);
	if (spawner->lock < 0)
		return false;
	spawner->listener = entrance_listen(socket_path);
	if (spawner->listener < 0)
		return false;
	if (!open_rest(spawner)) {
		say_errno("the spawner can't watch its worker", errno);
		return false;
	}
	return true;
}
