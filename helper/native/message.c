/*
 * message.c: whole messages over a connection. See message.h.
 */
#define _GNU_SOURCE
#include "message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "wire.h"

#define ANSWER_LIMIT_US 5000000
#define FINISH_LIMIT_US 1000000

void put_u32(uint8_t *at, uint32_t value)
{
	for (int i = 3; i >= 0; i--, value >>= 8)
		at[i] = (uint8_t)value;
}

void put_u64(uint8_t *at, uint64_t value)
{
	put_u32(at, (uint32_t)(value >> 32));
	put_u32(at + 4, (uint32_t)value);
}

uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint64_t get_u64(const uint8_t *at)
{
	return (uint64_t)get_u32(at) << 32 | get_u32(at + 4);
}

int message_read(int connection, int life, void *buffer, size_t length, int64_t deadline_us)
{
	uint8_t *at = buffer;

	while (length > 0) {
		ssize_t n = recv(connection, at, length, 0);

		if (n > 0) {
			at += n;
			length -= (size_t)n;
			continue;
		}
		if (n == 0)
			return ECONNRESET;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return errno;

		struct pollfd waits[2] = {{.fd = connection, .events = POLLIN}, {.fd = life, .events = POLLIN}};
		struct timespec left = time_left(deadline_us);

		if (ppoll(waits, 2, &left, NULL) == 0)
			return ETIMEDOUT;
		if (waits[1].revents != 0)
			return ECANCELED;
	}
	return 0;
}

int message_send(int connection, uint32_t kind, const uint8_t *body, size_t length, int64_t deadline_us)
{
	uint8_t message[MSG_HEADER + EXIT_BODY];
	size_t sent = 0, total = MSG_HEADER + length;

	if (length > EXIT_BODY)
		return EMSGSIZE;
	put_u32(message, kind);
	put_u32(message + 4, (uint32_t)length);
	if (length > 0)
		memcpy(message + MSG_HEADER, body, length);

	while (sent < total) {
		ssize_t n = send(connection, message + sent, total - sent, MSG_NOSIGNAL);

		if (n > 0) {
			sent += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return errno;

		struct pollfd wait = {.fd = connection, .events = POLLOUT};
		struct timespec left = time_left(deadline_us);

		if (ppoll(&wait, 1, &left, NULL) == 0)
			return ETIMEDOUT;
	}
	return 0;
}

int message_send_failed(int connection, uint32_t step, int error)
{
	uint8_t body[8];

	put_u32(body, step);
	put_u32(body + 4, (uint32_t)error);
	return message_send(connection, MSG_FAILED, body, sizeof body, now_us() + ANSWER_LIMIT_US);
}

void message_finish(int connection)
{
	int64_t deadline = now_us() + FINISH_LIMIT_US;
	uint8_t ignored[4096];

	/* Closing with unread input would reset the connection and throw away the answer. */
	if (shutdown(connection, SHUT_WR) != 0)
		return;
	while (now_us() < deadline) {
		ssize_t n = recv(connection, ignored, sizeof ignored, 0);

		if (n > 0 || (n < 0 && errno == EINTR))
			continue;
		if (n == 0 || errno != EAGAIN)
			return;

		struct pollfd wait = {.fd = connection, .events = POLLIN};
		struct timespec left = time_left(deadline);

		if (ppoll(&wait, 1, &left, NULL) == 0)
			return;
	}
}
