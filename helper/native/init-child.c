/*
 * init-child.c: the worker and the gateway as init sees them. See init-child.h.
 */
#define _GNU_SOURCE
#include "init-child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "drop.h"
#include "say.h"
#include "signals.h"

#define CHANNEL 3
#define ENV_MAX 1024
#define DELAY_FIRST_US 100000
#define DELAY_LAST_US 5000000
#define LIVED_WELL_US 10000000

extern char **environ;

/* The worker holds root and never needs the callers' token: what it does not have, it can't leak. */
static bool is_token(const char *entry)
{
	static const char *const names[] = {"RUNNER_TOKEN=", "RUNNER_TOKEN_FILE=", "RUNNER_TOKEN_PREVIOUS=",
					    "RUNNER_TOKEN_PREVIOUS_FILE="};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

static char **worker_environment(void)
{
	static char *kept[ENV_MAX + 1];
	size_t count = 0;

	for (char **entry = environ; *entry != NULL; entry++) {
		if (is_token(*entry))
			continue;
		if (count == ENV_MAX)
			return NULL;
		kept[count++] = *entry;
	}
	kept[count] = NULL;
	return kept;
}

/* The channel as descriptor 3 and nothing above it. Above 3 first: dup2 onto itself would keep close-on-exec. */
static bool set_descriptors(int channel)
{
	int high = fcntl(channel, F_DUPFD_CLOEXEC, 16);

	return high >= 0 && dup2(high, CHANNEL) == CHANNEL && close_range(CHANNEL + 1, ~0U, 0) == 0;
}

static _Noreturn void be_child(const struct child *child, int channel)
{
	char channel_option[] = "--init-channel=3";
	char *args[] = {(char *)child->node, (char *)child->program, channel_option, NULL};
	char **environment = child->uid == 0 ? worker_environment() : environ;

	if (environment == NULL || !set_descriptors(channel)) {
		say("a child can't be prepared");
		_exit(126);
	}
	if (child->uid != 0 && drop_to(child->uid, child->gid) != 0) {
		say("the gateway's rights can't be dropped");
		_exit(126);
	}
	if (signals_reset_all() != 0 || signals_unblock_all() != 0)
		_exit(126);
	execve(child->node, args, environment);
	say_errno("node can't be started", errno);
	_exit(127);
}

void child_start(struct child *child)
{
	int ends[2];

	child->started_us = now_us();
	child->ready = false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
		say_errno("a channel can't be made", errno);
		child_died(child);
		return;
	}
	child->channel = ends[0];
	child->pid = fork();
	if (child->pid == 0) {
		close(ends[0]);
		be_child(child, ends[1]);
	}
	close(ends[1]);
	if (child->pid < 0) {
		say_errno("a child can't be forked", errno);
		child_died(child);
	}
}

void child_died(struct child *child)
{
	int64_t now = now_us();

	if (child->channel >= 0)
		close(child->channel);
	child->channel = -1;
	child->pid = 0;
	if (child->delay_us == 0 || now - child->started_us >= LIVED_WELL_US)
		child->delay_us = DELAY_FIRST_US;
	else if (child->delay_us < DELAY_LAST_US)
		child->delay_us = child->delay_us * 2 < DELAY_LAST_US ? child->delay_us * 2 : DELAY_LAST_US;
	child->next_start_us = now + child->delay_us;
}

void child_listen(struct child *child)
{
	char bytes[16];
	ssize_t n = recv(child->channel, bytes, sizeof bytes, 0);

	if (n > 0) {
		child->ready |= memchr(bytes, 'R', (size_t)n) != NULL;
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* It is about to die, or has closed what it should not have; its end is what counts. */
	close(child->channel);
	child->channel = -1;
}

void child_drain(struct child *child)
{
	if (child->channel >= 0 && send(child->channel, "D", 1, MSG_NOSIGNAL) != 1)
		say("a child can't be told to drain");
}

