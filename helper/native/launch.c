/*
 * launch.c: the supervisor's side of a launch. The child's side is launch-child.c. See launch.h.
 */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch-child.h"
#include "wire.h"

/* Root looks at the space from outside only; what lies beneath is opened by the child, as the user. */
static int open_space(const struct plan *plan)
{
	struct stat st;
	int space = open(plan->space, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (space < 0)
		return -1;
	if (fstat(space, &st) != 0 || !S_ISDIR(st.st_mode))
		errno = ENOTDIR;
	else if (st.st_uid != plan->uid || st.st_gid != plan->uid)
		errno = EPERM;
	else if ((st.st_mode & 07777) != 0700)
		errno = EACCES;
	else
		return space;
	close(space);
	return -1;
}

/* The tool's end belongs to its user, so that it can open /dev/stdout and /dev/stderr by name. */
static int make_output_pipe(uid_t user, int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	/* Only our end: its user can open the pipe too, and empty it between our poll and our read. */
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 || fchown(ends[1], user, user) != 0)
		return -1;
	return 0;
}

static int open_null(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int make_tool_pipes(uid_t user, struct launch *launch, struct child_setup *setup)
{
	int out[2], err[2];

	setup->in = open_null();
	if (setup->in < 0 || make_output_pipe(user, out) != 0 || make_output_pipe(user, err) != 0)
		return -1;
	setup->out = out[1];
	setup->err = err[1];
	launch->input = -1;
	launch->output[0] = out[0];
	launch->output[1] = err[0];
	return 0;
}

/* They stay root's: its user's other processes can't open them by name, and answer in its place. */
static int make_helper_pipes(struct launch *launch, struct child_setup *setup)
{
	int in[2], out[2];

	setup->err = open_null();
	if (setup->err < 0 || pipe2(in, O_CLOEXEC) != 0 || fcntl(in[1], F_SETFL, O_NONBLOCK) != 0 ||
	    make_output_pipe(0, out) != 0)
		return -1;
	setup->in = in[0];
	setup->out = out[1];
	launch->input = in[1];
	launch->output[0] = out[0];
	launch->output[1] = -1;
	return 0;
}

uint32_t launch_start(const struct plan *plan, struct launch *launch, int *error)
{
	struct child_setup setup = {.plan = plan, .space = -1, .traced = plan->max_address != 0};
	int status[2];

	if (!plan->helper && (setup.space = open_space(plan)) < 0) {
		*error = errno;
		return STEP_SPACE;
	}
	/* On failure the descriptors end with the supervisor. */
	if ((plan->helper ? make_helper_pipes(launch, &setup) : make_tool_pipes(plan->uid, launch, &setup)) != 0 ||
	    pipe2(status, O_CLOEXEC | O_NONBLOCK) != 0) {
		*error = errno;
		return STEP_PIPES;
	}
	setup.status = status[1];

	pid_t pid = fork();

	if (pid == 0)
		child_main(&setup);
	if (pid < 0) {
		*error = errno;
		return STEP_FORK;
	}
	if (setup.space >= 0)
		close(setup.space);
	close(setup.in);
	close(setup.out);
	close(setup.err);
	close(setup.status);
	launch->leader = pid;
	launch->status = status[0];
	launch->traced = setup.traced;
	return 0;
}

void launch_stopped(struct launch *launch, int status)
{
	int signal = WSTOPSIG(status);

	/* A tool that asks to be traced by its parent stops at its own wish; it stays so until the run ends. */
	if (!launch->traced || launch->loaded)
		return;
	if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
		launch->loaded = true;
		ptrace(PTRACE_DETACH, launch->leader, NULL, NULL);
		return;
	}
	/* The child's own first stop, made while it was still root's, so that nobody could have sent it. */
	if (!launch->optioned) {
		launch->optioned = true;
		ptrace(PTRACE_SETOPTIONS, launch->leader, NULL, (void *)(long)(PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL));
		signal = 0;
	}
	ptrace(PTRACE_CONT, launch->leader, NULL, (void *)(long)signal);
}

uint32_t launch_failure(const struct launch *launch, int status, int *error)
{
	struct child_report report;

	if (read(launch->status, &report, sizeof report) == (ssize_t)sizeof report) {
		*error = report.error;
		return report.step;
	}
	if (launch->traced && !launch->loaded && WIFSIGNALED(status)) {
		*error = ENOMEM;
		return STEP_EXEC;
	}
	return 0;
}
