/*
 * request.c: what the worker says after its first message. See request.h.
 */
#define _GNU_SOURCE
#include "request.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "message.h"
#include "processes.h"
#include "run.h"

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

/* The header, and for MSG_USER the body. False for what is not allowed, or not now. */
static bool take(struct run *run)
{
	struct request *request = &run->request;
	uint32_t kind = get_u32(request->bytes), length = get_u32(request->bytes + 4);

	if (run->reason == END_STOPPED)
		return false;
	if (kind == MSG_STOP && length == 0) {
		run_end_because(run, END_STOPPED);
	} else if (kind == MSG_STDIN && run->plan.helper && input_accepts(&run->input, length)) {
		request->input_left = length;
		if (length == 0)
			input_end(&run->input);
	} else if (kind == MSG_USER && run->plan.helper && run->plan.uid == 0 && length == 4) {
		if (request->have < sizeof request->bytes)
			return true; /* the body is to come */

		uid_t user = get_u32(request->bytes + MSG_HEADER);

		if (!is_user(user))
			return false;
		run->plan.uid = user;
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
