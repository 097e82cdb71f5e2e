/*
 * end-uid.c: until no process of a user is left anywhere. See end-uid.h.
 */
#define _GNU_SOURCE
#include "end-uid.h"

#include <poll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "killer.h"
#include "processes.h"
#include "wire.h"

#define WATCHED_MAX 64
#define ROUND_US 20000
#define KILLER_SLOW_US 50000

struct finding {
	uid_t user;
	int count;
	int others; /* of them no killers */
	int watched;
	struct pollfd watch[WATCHED_MAX + 2];
};

static bool look(const struct process *process, void *context)
{
	struct finding *finding = context;

	/* A killer at work for this user, seen by its ids: what it is about to do could hit the user's next run. */
	if (is_killer(process->real) && process->effective == finding->user) {
		finding->count++;
		return true;
	}
	if (process_user(process) != finding->user)
		return true;
	finding->others++;
	finding->count++;
	/* A zombie waits for its parent; its descriptor would be readable at once. */
	if (!process->zombie && finding->watched < WATCHED_MAX) {
		int fd = pidfd_open(process->pid, 0);

		if (fd >= 0)
			finding->watch[finding->watched++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	return true;
}

/* Waits until one of those found has exited, at most a round. */
static void wait_for_one(struct finding *finding, int *connection, int *life)
{
	struct timespec round = {0, ROUND_US * 1000};
	struct pollfd *extra = &finding->watch[finding->watched];

	extra[0] = (struct pollfd){.fd = *connection, .events = POLLRDHUP};
	extra[1] = (struct pollfd){.fd = *life, .events = POLLIN};
	if (ppoll(finding->watch, (nfds_t)finding->watched + 2, &round, NULL) > 0) {
		if (extra[0].revents != 0)
			*connection = -1;
		if (extra[1].revents != 0)
			*life = -1;
	}
	for (int i = 0; i < finding->watched; i++)
		close(finding->watch[i].fd);
}

bool end_uid(uid_t user, int connection, int life)
{
	const bool watched_life = life >= 0;
	int64_t limit = now_us() + (int64_t)END_LIMIT_MS * 1000;
	int64_t killer_since = 0;
	struct killers killers = {{0}};

	for (;;) {
		struct finding finding = {.user = user};
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			killers_took(&killers, pid);

		/* Looked at before /proc: a killer that ends meanwhile has done its work before the look. */
		bool at_work = killers_at_work(&killers);

		if (processes_each(look, &finding) == 0 && finding.count == 0 && !at_work)
			return true;
		/* The next round sees what it did. One that its user starves gets another beside it. */
		if (finding.others > 0 && (!at_work || now_us() - killer_since > KILLER_SLOW_US)) {
			killers_start(&killers, KILLER_ALL, user, 0);
			killer_since = now_us();
		}
		wait_for_one(&finding, &connection, &life);
		if ((connection < 0 || (watched_life && life < 0)) && now_us() > limit)
			return false;
	}
}
