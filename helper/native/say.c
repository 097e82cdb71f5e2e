/*
 * say.c: fixed sentences for the operator. See say.h.
 */
#include "say.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *speaker = "";

void say_as(const char *mode)
{
	speaker = mode;
}

static void write_line(const char *line, size_t length)
{
	struct pollfd log = {.fd = STDERR_FILENO, .events = POLLOUT};

	/* Descriptor 2 may be a pipe whose reader stalls. A writable pipe takes a short line whole. */
	if (poll(&log, 1, 0) != 1 || !(log.revents & POLLOUT))
		return;
	if (write(STDERR_FILENO, line, length) < 0)
		return;
}

static size_t bounded(int written, size_t room)
{
	if (written < 0)
		return 0;
	return (size_t)written < room ? (size_t)written : room - 1;
}

void say(const char *sentence)
{
	char line[512];
	int n = snprintf(line, sizeof line, "workspace-runner %s: %s\n", speaker, sentence);

	write_line(line, bounded(n, sizeof line));
}

void say_errno(const char *sentence, int error)
{
	char line[512];
	int n = snprintf(line, sizeof line, "workspace-runner %s: %s: %s\n", speaker, sentence, strerror(error));

	write_line(line, bounded(n, sizeof line));
}
