/*
 * init.c: what `workspace-runner start` becomes. See init.h.
 */
#define _GNU_SOURCE
#include "init.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "init-child.h"
#include "init-rights.h"
#include "init-start.h"
#include "init-way.h"
#include "killer.h"
#include "leftovers.h"
#include "say.h"

#define EX_CONFIG 78
#define READY_LIMIT_US 30000000
#define GATEWAY_STOP_US 1500000
#define WORKER_STOP_US 3000000
#define REST_STOP_US 5000000
#define HARD_BEFORE_US 4500000
#define AGAIN_US 20000
#define REAP_MAX 4096

enum stage { RUNNING, STOP_GATEWAY, STOP_WORKER, STOP_REST };

static struct {
	struct child worker, gateway;
	struct killers killers;
	enum stage stage;
	int64_t stage_limit_us;
	int exit_status;
	bool urgent;           /* a second TERM: no more waiting for drains */
	bool served;           /* a worker has been ready once; only then does the gateway start */
	bool none_left;        /* wait() said ECHILD */
	int signals;
} init = {.worker = {.channel = -1}, .gateway = {.channel = -1}};

static void enter(enum stage stage, int64_t limit_us)
{
	init.stage = stage;
	init.stage_limit_us = init.urgent ? now_us() : now_us() + limit_us;
}

static void begin_stop(int exit_status)
{
	if (init.stage != RUNNING)
		return;
	init.exit_status = exit_status;
	enter(STOP_GATEWAY, GATEWAY_STOP_US);
	child_drain(&init.gateway);
}

static void on_exit_of(struct child *child, int status)
{
	child_died(child);
	/* It has said why already; starting it again can't help. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == EX_CONFIG)
		begin_stop(EX_CONFIG);
	else if (init.stage == RUNNING)
		say(child == &init.worker ? "the worker died and will be started again"
					  : "the gateway died and will be started again");
}

static void reap(void)
{
	int status, count = 0;
	pid_t pid = 0;

	/* Bounded: processes that fork and exit all the time must not keep init here. */
	while (count++ < REAP_MAX && (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (!WIFEXITED(status) && !WIFSIGNALED(status))
			continue;
		if (pid == init.worker.pid)
			on_exit_of(&init.worker, status);
		else if (pid == init.gateway.pid)
			on_exit_of(&init.gateway, status);
		else
			killers_took(&init.killers, pid);
	}
	init.none_left = pid < 0 && errno == ECHILD;
}

/* Starts what should run. Returns when to look again at the latest, 0 = no need. */
static int64_t run_children(void)
{
	struct child *worker = &init.worker, *gateway = &init.gateway;
	int64_t now = now_us(), next = 0;

	init.served |= worker->ready;
	if (worker->pid == 0) {
		if (now < worker->next_start_us)
			next = worker->next_start_us;
		else if (init_way_is_clear(&init.killers))
			child_start(worker);
		else
			next = now + AGAIN_US;
	}
	if (worker->pid != 0 && !worker->ready) {
		next = worker->started_us + READY_LIMIT_US;
		if (now >= next) {
			say("the worker was not ready within 30 seconds");
			kill_own(worker->pid);
			worker->started_us = now;
			next = now + READY_LIMIT_US;
		}
	}
	if (gateway->pid == 0 && init.served && gateway->program != NULL) {
		int64_t again = gateway->next_start_us;

		if (now >= again) {
			again = now + AGAIN_US;
			if (init_gateway_is_gone(&init.killers, gateway->uid)) {
				child_start(gateway);
				again = 0;
			}
		}
		if (again != 0 && (next == 0 || again < next))
			next = again;
	}
	return next;
}

/* Gateway first, so that nothing new comes in; then the worker, which ends all runs; then what is left of them.
 * True when all is done. */
static bool stop_children(void)
{
	bool late = now_us() >= init.stage_limit_us;

	if (init.stage == STOP_GATEWAY) {
		if (init.gateway.pid != 0 && !late)
			return false;
		enter(STOP_WORKER, WORKER_STOP_US);
		child_drain(&init.worker);
		late = init.urgent;
	}
	if (init.stage == STOP_WORKER) {
		init_gateway_is_gone(&init.killers, init.gateway.uid);
		if (init.worker.pid != 0 && !late)
			return false;
		kill_own(init.worker.pid);
		init.urgent = false; /* the spawner needs its time to end all runs */
		enter(STOP_REST, REST_STOP_US);
		late = false;
	}
	if (init.none_left)
		return true;
	init_gateway_is_gone(&init.killers, init.gateway.uid);
	/* Users' processes that came to init because their supervisor and the spawner died too. */
	leftovers_end(&init.killers, getpid(), now_us() + HARD_BEFORE_US > init.stage_limit_us);
	if (late) {
		say("processes are left after the stop");
		init.exit_status = 1;
	}
	return late;
}

static void read_signals(void)
{
	struct signalfd_siginfo seen;

	while (read(init.signals, &seen, sizeof seen) == (ssize_t)sizeof seen) {
		if (seen.ssi_signo == SIGCHLD)
			continue;
		if (init.stage != RUNNING) {
			init.urgent = init.stage != STOP_REST;
			init.stage_limit_us = init.urgent ? now_us() : init.stage_limit_us;
		}
		begin_stop(0);
	}
}

static int serve(void)
{
	int64_t next;

	for (;;) {
		reap();
		if (init.stage == RUNNING) {
			next = run_children();
		} else {
			if (stop_children())
				return init.exit_status;
			next = init.stage == STOP_GATEWAY ? init.stage_limit_us : now_us() + AGAIN_US;
		}

		struct pollfd waits[] = {
			{.fd = init.signals, .events = POLLIN},
			{.fd = init.worker.channel, .events = POLLIN},
			{.fd = init.gateway.channel, .events = POLLIN},
		};
		struct timespec left = time_left(next);

		if (ppoll(waits, 3, next != 0 ? &left : NULL, NULL) <= 0)
			continue;
		if (waits[0].revents != 0)
			read_signals();
		if (waits[1].revents != 0)
			child_listen(&init.worker);
		if (waits[2].revents != 0)
			child_listen(&init.gateway);
	}
}

int init_main(char **args)
{
	say_as("init");
	if (!init_read_id(args[0], &init.gateway.uid) || !init_read_id(args[1], &init.gateway.gid)) {
		say("the gateway's uid and gid must be numbers outside the users' range, and not root's");
		return 64;
	}
	init.signals = init_prepare();
	if (init.signals < 0) {
		say_errno("this process can't be prepared", errno);
		return 1;
	}
	if (!init_rights())
		return 77;
	init.worker.node = init.gateway.node = args[2];
	init.worker.program = args[3];
	/* The worker alone: its gateway runs elsewhere. */
	init.gateway.program = strcmp(args[4], "-") == 0 ? NULL : args[4];
	killer_also_for(init.gateway.uid);
	if (getenv("RUNNER_WORK_DIR") != NULL)
		leftovers_work_dir(getenv("RUNNER_WORK_DIR"));
	return serve();
}
