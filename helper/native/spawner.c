/*
 * spawner.c: accepts the worker's connections and forks a supervisor for each. See spawner.h.
 */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "killer.h"
#include "leftovers.h"
#include "message.h"
#include "processes.h"
#include "say.h"
#include "signals.h"
#include "spawner-start.h"
#include "supervisor.h"
#include "wire.h"

#define SUPERVISORS_MAX 2048
#define REAP_MAX 1024
#define ORPHANS_AGAIN_MS 10
#define ORPHANS_HARD_US 200000

static struct spawner spawner;

static struct {
	int count;
	pid_t pid[SUPERVISORS_MAX];
} supervisors;

static struct killers killers;

/* Where it is in the list, or -1. */
static int supervisor_at(pid_t pid)
{
	for (int i = 0; i < supervisors.count; i++) {
		if (supervisors.pid[i] == pid)
			return i;
	}
	return -1;
}

static bool took_supervisor(pid_t reaped)
{
	int at = supervisor_at(reaped);

	if (at < 0)
		return false;
	supervisors.pid[at] = supervisors.pid[--supervisors.count];
	return true;
}

/* The socket's folder keeps all but root out; this keeps all but the worker itself out. Its pid can't be somebody
 * else's by now: a dead worker is noticed by its pidfd and by the lifeline. */
static bool is_worker(int connection)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == 0 &&
	       peer.pid == spawner.worker;
}

static _Noreturn void be_supervisor(int connection)
{
	/* Another run's connection is never here: the spawner closes each right after fork. */
	close(spawner.listener);
	close(spawner.life_write);
	close(spawner.worker_end);
	close(spawner.children);
	if (dup2(spawner.null, STDIN_FILENO) < 0 || dup2(spawner.null, STDOUT_FILENO) < 0)
		_exit(1);
	close(spawner.null);
	supervisor_main(connection, spawner.life_read);
}

/* With what came already read, so that closing does not throw the answer away. */
static void refuse_fork(int connection, int error)
{
	static char ignored[65536];

	message_send_failed(connection, STEP_FORK, error);
	shutdown(connection, SHUT_WR);
	for (int i = 0; i < PLAN_MAX / (int)sizeof ignored + 1; i++) {
		if (recv(connection, ignored, sizeof ignored, MSG_DONTWAIT) <= 0)
			break;
	}
}

static void accept_one(void)
{
	int connection = accept4(spawner.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (connection < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			poll(NULL, 0, 10); /* no descriptors or memory: the pending connection stays readable */
		return;
	}
	if (!is_worker(connection) || supervisors.count == SUPERVISORS_MAX) {
		close(connection);
		return;
	}

	pid_t pid = fork();

	if (pid == 0)
		be_supervisor(connection);
	if (pid > 0)
		supervisors.pid[supervisors.count++] = pid;
	else
		refuse_fork(connection, errno);
	close(connection);
}

/* What is neither a supervisor nor a killer and still root's has not dropped yet: it goes as root's own child. */
static bool end_orphan(const struct process *process, void *context)
{
	int *orphans = context;

	if (process->parent != getpid() || supervisor_at(process->pid) >= 0)
		return true;
	*orphans += 1;
	if (process->effective == 0 && !killers_have(&killers, process->pid))
		kill_own(process->pid);
	return true;
}

/* True when children may be left to reap. Sets `orphaned` when a supervisor did not end by itself. */
static bool reap(bool *none_left, bool *orphaned)
{
	*none_left = false;
	for (int i = 0; i < REAP_MAX; i++) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);

		if (pid == 0)
			return false;
		if (pid < 0) {
			*none_left = errno == ECHILD;
			return false;
		}
		if (!WIFEXITED(status) && !WIFSIGNALED(status))
			continue;
		if (took_supervisor(pid) && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
			*orphaned = true;
		killers_took(&killers, pid);
	}
	return true;
}

/* The worker is gone: no new runs, and every supervisor sees its life end. */
static void stop(void)
{
	close(spawner.listener);
	close(spawner.life_write);
	spawner.listener = -1;
	spawner.life_write = -1;
}

static bool lifeline_ended(void)
{
	char ignored[64];
	ssize_t n = read(STDIN_FILENO, ignored, sizeof ignored);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* A supervisor that was killed leaves its run to the spawner, the next subreaper. True while children are left that are
 * no supervisors. */
static bool end_orphans(int64_t *since_us)
{
	int orphans = 0;

	if (*since_us == 0)
		*since_us = now_us();

	bool left = leftovers_end(&killers, getpid(), now_us() - *since_us > ORPHANS_HARD_US);

	if (processes_each(end_orphan, &orphans) != 0 || orphans > 0 || left)
		return true;
	*since_us = 0;
	return false;
}

static int serve(void)
{
	int64_t stopped_us = 0, orphaned_us = 0;
	bool orphaned = false, more = false, none_left = false, told = false;

	for (;;) {
		struct pollfd waits[] = {
			{.fd = spawner.children, .events = POLLIN},
			{.fd = spawner.listener, .events = POLLIN},
			{.fd = stopped_us == 0 ? STDIN_FILENO : -1, .events = POLLIN},
			{.fd = stopped_us == 0 ? spawner.worker_end : -1, .events = POLLIN},
		};
		int wait_ms = more ? 0 : orphaned ? ORPHANS_AGAIN_MS : -1;

		if (poll(waits, 4, wait_ms) < 0 && errno != EINTR)
			return 1;
		if (waits[0].revents != 0)
			signals_drain(spawner.children);
		if ((waits[2].revents != 0 && lifeline_ended()) || waits[3].revents != 0) {
			stop();
			stopped_us = now_us();
		}
		if (spawner.listener >= 0 && waits[1].revents != 0)
			accept_one();
		more = reap(&none_left, &orphaned);
		if (stopped_us != 0 && none_left)
			return 0;
		if (orphaned || (stopped_us != 0 && supervisors.count == 0))
			orphaned = end_orphans(&orphaned_us);
		if (stopped_us != 0 && !told && now_us() - stopped_us > (int64_t)END_LIMIT_MS * 1000) {
			told = true;
			say("runs are left 5 seconds after the worker's end; still ending them");
		}
	}
}

int spawner_main(const char *socket_path, const char *lock_path)
{
	say_as("spawner");
	if (!spawner_start(&spawner, socket_path, lock_path))
		return 1;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	return serve();
}
