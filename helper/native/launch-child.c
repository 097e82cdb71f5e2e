/*
 * launch-child.c: the child's steps between fork and exec. See launch-child.h.
 *
 * Only system calls and plain memory here. From the drop on, other processes of the same user can stop or kill this
 * one; they can't trace it or read it, since a process that changed its uid and has not yet exec'd is not dumpable.
 */
#define _GNU_SOURCE
#include "launch-child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drop.h"
#include "signals.h"
#include "terminal.h"
#include "wire.h"

#define RESOLVE_TRIES 32
#define TOOL_NICE 10

/* The service comes first: the tool dies before it when memory runs out, and waits for it when processors do, so that
 * a supervisor and its killers get their turn among thousands of busy processes. Neither needs a
 * capability. The rank can't be taken back; the score can, by a tool that means harm, and then it is one among equals. */
static int give_way(void)
{
	int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (getpriority(PRIO_PROCESS, 0) < TOOL_NICE && setpriority(PRIO_PROCESS, 0, TOOL_NICE) != 0)
		return -1;
	if (file < 0)
		return -1;
	return write(file, "1000", 4) == 4 ? close(file) : -1;
}

/* Soft = hard, so that the tool can't raise it; never above what this process was itself given. */
static int limit(__rlimit_resource_t resource, uint64_t value)
{
	struct rlimit now;

	if (getrlimit(resource, &now) != 0)
		return -1;
	if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
		value = now.rlim_max;
	return setrlimit(resource, &(struct rlimit){value, value});
}

static int set_limits(const struct child_setup *setup)
{
	const struct plan *plan = setup->plan;

	/* The supervisor must see the exec stop. Asked for while still root, so that no user can meddle. */
	if (setup->traced && (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || raise(SIGSTOP) != 0))
		return -1;
	/* A core file would put environment values, tokens among them, on the disk. */
	if (limit(RLIMIT_CORE, 0) != 0)
		return -1;
	if (plan->max_processes != 0 && limit(RLIMIT_NPROC, plan->max_processes) != 0)
		return -1;
	if (plan->max_file_size != 0 && limit(RLIMIT_FSIZE, plan->max_file_size) != 0)
		return -1;
	if (plan->max_address != 0 && limit(RLIMIT_AS, plan->max_address) != 0)
		return -1;
	return 0;
}

/* The user may swap folders for links meanwhile; beneath home is all that the kernel lets through. */
static int enter_directory(int home, const char *directory)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	for (int i = 0; i < RESOLVE_TRIES; i++) {
		long folder = syscall(SYS_openat2, home, directory[0] == 0 ? "." : directory, &how, sizeof how);

		if (folder >= 0)
			return fchdir((int)folder);
		if (errno != EAGAIN) /* a rename somewhere meanwhile: the kernel could not be sure */
			return -1;
	}
	return -1;
}

static int set_descriptors(const struct child_setup *setup)
{
	if (dup2(setup->in, 0) < 0 || dup2(setup->out, 1) < 0 || dup2(setup->err, 2) < 0)
		return -1;
	return close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
}

static _Noreturn void report(const struct child_setup *setup, uint32_t step, int error)
{
	struct child_report failed = {.step = step, .error = error};

	if (write(setup->status, &failed, sizeof failed) < 0)
		_exit(126);
	_exit(127);
}

/* To the user, and to a folder beneath the user's home. */
static void become_user(const struct child_setup *setup)
{
	const struct plan *plan = setup->plan;
	uint32_t failed = drop_to(plan->uid, plan->uid);

	if (failed != 0)
		report(setup, failed, errno);

	int home = openat(setup->space, "home", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (home < 0)
		report(setup, STEP_HOME, errno);
	if (enter_directory(home, plan->directory) != 0)
		report(setup, STEP_DIRECTORY, errno);
}

/* A helper drops by itself, once it is told to whom: no supervisor's real uid, so that it is not taken for one. */
static void become_root(const struct child_setup *setup)
{
	if (setresuid(0, 0, 0) != 0)
		report(setup, STEP_UID, errno);
	if (chdir("/") != 0)
		report(setup, STEP_DIRECTORY, errno);
}

_Noreturn void child_main(const struct child_setup *setup)
{
	const struct plan *plan = setup->plan;

	/* The terminal is taken while still root, and before the drop: no step of it is the user's. */
	if (setsid() < 0 || (plan->stdio == STDIO_TERMINAL && terminal_take(setup->in) != 0))
		report(setup, STEP_SESSION, errno);
	if (give_way() != 0)
		report(setup, STEP_OOM_SCORE, errno);
	if (set_limits(setup) != 0)
		report(setup, STEP_LIMITS, errno);
	umask(077);
	if (plan->helper)
		become_root(setup);
	else
		become_user(setup);
	if (set_descriptors(setup) != 0)
		report(setup, STEP_DESCRIPTORS, errno);
	/* Ignored signals and the mask outlive exec; a tool must find both as a login would leave them. */
	if (signals_reset_all() != 0 || signals_unblock_all() != 0)
		report(setup, STEP_SIGNALS, errno);
	execve(plan->program, plan->args, plan->env);
	report(setup, STEP_EXEC, errno);
}
