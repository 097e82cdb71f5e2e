/*
 * request.c: what the worker says after its first message. See request.h.
 */
#define _GNU_SOURCE
#include "request.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "killer.h"
#include "message.h"
#include "processes.h"
#include "run.h"
#include "terminal.h"

/* As recv(), but -1 only for "not now". At the connection's end, 0. */
static ssize_t receive(struct run *run, uint8_t *at, size_t length)
{
	ssize_t n = recv(run->relay.connection, at, length, 0);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return 0;
	return n;
}

static void read_input(struct run *run)
{
	struct request *request = &run->request;
	ssize_t n = receive(run, input_place(&run->input), request->input_left);

	if (n == 0)
		run_lost(run);
	if (n <= 0)
		return;
	request->input_left -= (size_t)n;
	input_add(&run->input, (size_t)n);
	relay_taken(&run->relay, input_write(&run->input));
}

static bool reads_input(const struct run *run)
{
	return run->plan.helper || run->plan.stdio != STDIO_EMPTY;
}

static bool take_user(struct run *run, uid_t user)
{
	if (!run->plan.helper || run->plan.uid != 0 || !is_user(user))
		return false;
	run->plan.uid = user;
	return true;
}

static bool take_resize(struct run *run, uint32_t size)
{
	if (run->launch.terminal < 0 || !is_terminal_size(size))
		return false;
	terminal_resize(run->launch.terminal, size);
	return true;
}

static bool take_signal(struct run *run, uint32_t sig)
{
	enum killer_job job;

	if (run->plan.stdio == STDIO_EMPTY)
		return false;
	if (sig == SIGKILL) {
		run->plan.grace_ms = 0;
		run_end_because(run, END_STOPPED);
		return true;
	}
	if (sig == SIGHUP)
		job = KILLER_HUP_GROUP;
	else if (sig == SIGINT)
		job = KILLER_INT_GROUP;
	else if (sig == SIGTERM)
		job = KILLER_TERM_GROUP;
	else
		return false;

	pid_t group = run->launch.terminal < 0 ? 0 : terminal_foreground(run->launch.terminal);

	/* A leader that is gone has been reaped: its number could be somebody else's. */
	if (!run->leader_gone)
		killers_start(&run->killers, job, run->plan.uid, group != 0 ? group : run->launch.leader);
	return true;
}

/* A message whose body is one number. */
static bool take_number(struct run *run, uint32_t kind, uint32_t number)
{
	switch (kind) {
	case MSG_USER:
		return take_user(run, number);
	case MSG_RESIZE:
		return take_resize(run, number);
	case MSG_SIGNAL:
		return take_signal(run, number);
	default:
		return false;
	}
}

/* The header, and the body of a number. False for what is not allowed, or not now. */
static bool take(struct run *run)
{
	struct request *request = &run->request;
	uint32_t kind = get_u32(request->bytes), length = get_u32(request->bytes + 4);

	if (run->reason == END_STOPPED)
		return false;
	if (kind == MSG_STOP && length == 0) {
		run_end_because(run, END_STOPPED);
	} else if (kind == MSG_STDIN && reads_input(run) && input_accepts(&run->input, length)) {
		request->input_left = length;
		if (length == 0)
			input_end(&run->input);
	} else if (kind != MSG_STOP && kind != MSG_STDIN && length == 4) {
		if (request->have < sizeof request->bytes)
			return true; /* the body is to come */
		if (!take_number(run, kind, get_u32(request->bytes + MSG_HEADER)))
			return false;
	} else {
		return false;
	}
	request->have = 0;
	return true;
}

void request_read(struct run *run)
{
	struct request *request = &run->request;

	if (request->input_left == 0) {
		size_t wanted = request->have < MSG_HEADER ? MSG_HEADER : sizeof request->bytes;
		ssize_t n = receive(run, request->bytes + request->have, wanted - request->have);

		if (n < 0)
			return;
		request->have += (size_t)n;
		if (n == 0 || (request->have == wanted && !take(run))) {
			run_lost(run);
			return;
		}
	}
	if (request->input_left > 0)
		read_input(run);
}
