/*
 * launch.c: the supervisor's side of a launch. The child's side is launch-child.c. See launch.h.
 */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch-child.h"
#include "terminal.h"
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

/* Of a process's output: each time that a pipe is full, or empty, costs two wake-ups. */
#define PROCESS_PIPE_BYTES 262144

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

/* The other way: what a tool reads is its user's too. */
static int make_input_pipe(uid_t user, int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	return fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && fchown(ends[0], user, user) == 0 ? 0 : -1;
}

static int make_tool_pipes(const struct plan *plan, struct launch *launch, struct child_setup *setup)
{
	uid_t user = plan->uid;
	int in[2] = {-1, -1}, out[2], err[2];

	if (plan->stdio == STDIO_EMPTY)
		in[0] = open_null();
	else if (make_input_pipe(user, in) != 0)
		return -1;
	if (in[0] < 0 || make_output_pipe(user, out) != 0 || make_output_pipe(user, err) != 0)
		return -1;
	if (plan->stdio == STDIO_PIPES) { /* where that much is not to be had, the pipe stays as it is */
		fcntl(out[0], F_SETPIPE_SZ, PROCESS_PIPE_BYTES);
		fcntl(err[0], F_SETPIPE_SZ, PROCESS_PIPE_BYTES);
	}
	setup->in = in[0];
	setup->out = out[1];
	setup->err = err[1];
	launch->input = in[1];
	launch->output[0] = out[0];
	launch->output[1] = err[0];
	return 0;
}

/* They stay root's: its user's other processes can't open them by name, and answer in its place. */
static int make_helper_pipes(struct launch *launch, struct child_setup *setup)
{
	int in[2], out[2];

	setup->err = open_null();
	if (setup->err < 0 || make_input_pipe(0, in) != 0 || make_output_pipe(0, out) != 0)
		return -1;
	setup->in = in[0];
	setup->out = out[1];
	launch->input = in[1];
	launch->output[0] = out[0];
	launch->output[1] = -1;
	return 0;
}

/* Three descriptors of the tool's end: each is closed by itself, here as well as in the child. */
static int make_terminal(const struct plan *plan, struct launch *launch, struct child_setup *setup)
{
	if (terminal_open(plan->uid, plan->terminal_size, &launch->terminal, &launch->held) != 0)
		return -1;
	setup->in = fcntl(launch->held, F_DUPFD_CLOEXEC, 3);
	setup->out = fcntl(launch->held, F_DUPFD_CLOEXEC, 3);
	setup->err = fcntl(launch->held, F_DUPFD_CLOEXEC, 3);
	launch->input = fcntl(launch->terminal, F_DUPFD_CLOEXEC, 3);
	launch->output[0] = fcntl(launch->terminal, F_DUPFD_CLOEXEC, 3);
	launch->output[1] = -1;
	return setup->in < 0 || setup->out < 0 || setup->err < 0 || launch->input < 0 || launch->output[0] < 0 ? -1 : 0;
}

static int make_streams(const struct plan *plan, struct launch *launch, struct child_setup *setup)
{
	launch->terminal = launch->held = -1;
	if (plan->helper)
		return make_helper_pipes(launch, setup);
	if (plan->stdio == STDIO_TERMINAL)
		return make_terminal(plan, launch, setup);
	return make_tool_pipes(plan, launch, setup);
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
	if (make_streams(plan, launch, &setup) != 0 || pipe2(status, O_CLOEXEC | O_NONBLOCK) != 0) {
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

void launch_status(struct launch *launch, short events)
{
	/* Told once; a report stays in the pipe for launch_failure. */
	if (launch->settled)
		return;
	launch->settled = events != 0;
	launch->executed = (events & POLLHUP) && !(events & POLLIN);
}

bool launch_is_done(const struct launch *launch)
{
	return launch->executed && (!launch->traced || launch->loaded);
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
