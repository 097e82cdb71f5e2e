/*
 * relay.c: the tool's output on its way to the worker. See relay.h.
 */
#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "message.h"

#define DROP_MAX 1048576

void relay_open(struct relay *relay, int connection, const int pipes[2], uint64_t cap, int64_t linger_us, bool tells_end)
{
	relay->connection = connection;
	relay->linger_us = linger_us;
	relay->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		relay->stream[i].pipe = pipes[i];
		relay->stream[i].kind = i == 0 ? MSG_STDOUT : MSG_STDERR;
		relay->stream[i].cap_left = cap;
		relay->stream[i].tells_end = tells_end && pipes[i] >= 0;
	}
}

static bool drops(const struct relay *relay, const struct stream *stream)
{
	return relay->closed || stream->cap_left == 0;
}

bool relay_wants(const struct relay *relay, const struct stream *stream)
{
	if (stream->pipe < 0 || (relay->settled && stream->rest == 0))
		return false;
	return drops(relay, stream) || (relay->unsent_count == 0 && stream->have < RELAY_MAX);
}

static void end_stream(struct stream *stream)
{
	close(stream->pipe);
	stream->pipe = -1;
	stream->rest = 0;
	stream->end_untold = stream->tells_end;
}

static ssize_t drop_output(const struct relay *relay, const struct stream *stream, size_t room)
{
	uint8_t ignored[RELAY_MAX];
	ssize_t n = splice(stream->pipe, NULL, relay->null, NULL, room, SPLICE_F_NONBLOCK);

	if (n >= 0 || errno == EAGAIN || errno == EINTR)
		return n;
	return read(stream->pipe, ignored, room < sizeof ignored ? room : sizeof ignored);
}

void relay_read(struct relay *relay, struct stream *stream)
{
	bool drop = drops(relay, stream);
	size_t room = drop ? DROP_MAX : RELAY_MAX - stream->have;
	ssize_t n;

	if (!drop && stream->cap_left < room)
		room = (size_t)stream->cap_left;
	if (relay->settled && stream->rest < room)
		room = (size_t)stream->rest;

	n = drop ? drop_output(relay, stream, room)
		 : read(stream->pipe, stream->frame + MSG_HEADER + stream->have, room);
	if (n < 0 && (errno == EINTR || (errno == EAGAIN && !relay->settled)))
		return;
	if (n <= 0) { /* the end of file; or, settled, somebody else took what was left */
		end_stream(stream);
		return;
	}
	if (relay->settled)
		stream->rest -= (uint64_t)n;
	if (drop) {
		stream->cut = true;
		return;
	}
	stream->have += (size_t)n;
	stream->cap_left -= (uint64_t)n;
	if (relay->linger_until == 0)
		relay->linger_until = now_us() + relay->linger_us;
}

void relay_started(struct relay *relay)
{
	relay->started = true;
}

void relay_taken(struct relay *relay, size_t bytes)
{
	relay->taken += (uint32_t)bytes;
}

void relay_control(struct relay *relay, uint32_t kind, const uint8_t body[EXIT_BODY])
{
	put_u32(relay->control, kind);
	put_u32(relay->control + 4, EXIT_BODY);
	memcpy(relay->control + MSG_HEADER, body, EXIT_BODY);
	relay->control_length = sizeof relay->control;
}

/* Takes all there is into one write: the start, then output, what was taken, the control message last. */
static void gather(struct relay *relay)
{
	if (relay->started) {
		put_u32(relay->started_frame, MSG_STARTED);
		put_u32(relay->started_frame + 4, 0);
		relay->started = false;
		relay->unsent[relay->unsent_count++] =
			(struct iovec){.iov_base = relay->started_frame, .iov_len = sizeof relay->started_frame};
	}
	for (int i = 0; i < 2; i++) {
		struct stream *stream = &relay->stream[i];

		if (stream->have == 0 && !stream->end_untold)
			continue;
		if (stream->have == 0) /* an empty frame; after output it is the next one */
			stream->end_untold = false;
		put_u32(stream->frame, stream->kind);
		put_u32(stream->frame + 4, (uint32_t)stream->have);
		relay->unsent[relay->unsent_count++] =
			(struct iovec){.iov_base = stream->frame, .iov_len = MSG_HEADER + stream->have};
	}
	if (relay->taken > 0) {
		put_u32(relay->taken_frame, MSG_STDIN_TAKEN);
		put_u32(relay->taken_frame + 4, 4);
		put_u32(relay->taken_frame + MSG_HEADER, relay->taken);
		relay->taken = 0;
		relay->unsent[relay->unsent_count++] =
			(struct iovec){.iov_base = relay->taken_frame, .iov_len = sizeof relay->taken_frame};
	}
	if (relay->control_length > 0)
		relay->unsent[relay->unsent_count++] =
			(struct iovec){.iov_base = relay->control, .iov_len = relay->control_length};
	relay->linger_until = 0;
}

static void all_sent(struct relay *relay)
{
	relay->unsent_count = 0;
	relay->stream[0].have = 0;
	relay->stream[1].have = 0;
	relay->control_length = 0;
}

static void took(struct relay *relay, size_t n)
{
	int done = 0;

	while (done < relay->unsent_count && n >= relay->unsent[done].iov_len)
		n -= relay->unsent[done++].iov_len;
	if (done == relay->unsent_count) {
		all_sent(relay);
		return;
	}
	relay->unsent_count -= done;
	memmove(relay->unsent, relay->unsent + done, (size_t)relay->unsent_count * sizeof *relay->unsent);
	relay->unsent[0].iov_base = (uint8_t *)relay->unsent[0].iov_base + n;
	relay->unsent[0].iov_len -= n;
}

static bool ready(const struct relay *relay)
{
	return relay->stream[0].have >= RELAY_MAX / 2 || relay->stream[1].have >= RELAY_MAX / 2 ||
	       relay->taken >= STDIN_WINDOW / 2 || relay->started || relay->stream[0].end_untold || relay->stream[1].end_untold ||
	       (relay->linger_until != 0 && now_us() >= relay->linger_until);
}

void relay_send(struct relay *relay, bool now)
{
	if (relay->closed)
		return;
	for (;;) {
		/* Again when all was sent: an end that is told after output waits for nothing else. */
		if (relay->unsent_count == 0 && (now || ready(relay)))
			gather(relay);
		if (relay->unsent_count == 0)
			return;

		struct msghdr message = {.msg_iov = relay->unsent, .msg_iovlen = (size_t)relay->unsent_count};
		ssize_t n = sendmsg(relay->connection, &message, MSG_NOSIGNAL);

		if (n >= 0)
			took(relay, (size_t)n);
		else if (errno == EAGAIN)
			return;
		else if (errno != EINTR) {
			relay_close(relay);
			return;
		}
	}
}

bool relay_sending(const struct relay *relay)
{
	return relay->unsent_count > 0;
}

void relay_close(struct relay *relay)
{
	relay->closed = true;
	relay->linger_until = 0;
	all_sent(relay);
}

void relay_settle(struct relay *relay, bool terminal)
{
	relay->settled = true;
	for (int i = 0; i < 2; i++) {
		struct stream *stream = &relay->stream[i];
		int left = 0;

		stream->tells_end = stream->end_untold = false; /* the run's end says it */

		if (stream->pipe >= 0 && terminal)
			stream->rest = RELAY_MAX;
		else if (stream->pipe >= 0 && ioctl(stream->pipe, FIONREAD, &left) == 0 && left > 0)
			stream->rest = (uint64_t)left;
	}
}

bool relay_done(const struct relay *relay)
{
	if (relay->closed)
		return true;
	return relay->unsent_count == 0 && relay->stream[0].have == 0 && relay->stream[1].have == 0 &&
	       relay->control_length == 0 && relay->stream[0].rest == 0 && relay->stream[1].rest == 0;
}
