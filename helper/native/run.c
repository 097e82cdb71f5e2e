/*
 * run.c: one run, from its plan to MSG_EXIT. See run.h.
 */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "ending.h"
#include "message.h"
#include "signals.h"
#include "tmpfiles.h"
#include "wire.h"

/* Whoever has lost its worker ends sooner than the worker would have allowed. */
#define LOST_GRACE_MS 1000
/* Each write wakes the worker, and a wake-up costs more than a short tool. What a helper answers, or a
 * terminal shows, is waited for. */
#define TOOL_LINGER_US 1000
/* A worker that takes nothing for so long after the run's end is not waited for. */
#define DELIVER_LIMIT_US 30000000

static struct run run;

void run_end_because(struct run *ending, uint32_t reason)
{
	if (ending->reason == 0)
		ending->reason = reason;
}

void run_lost(struct run *lost)
{
	lost->listened = false;
	relay_close(&lost->relay);
	run_end_because(lost, END_STOPPED);
}

static void tell_start(void)
{
	if (run.told_start || !launch_is_done(&run.launch))
		return;
	run.told_start = true;
	relay_started(&run.relay);
	relay_send(&run.relay, false);
}

/* Waits for whatever comes next, and deals with it. `deadline` 0 = none. */
static void turn(int64_t deadline)
{
	struct relay *relay = &run.relay;
	struct pollfd waits[7] = {
		{.fd = run.children, .events = POLLIN},
		{.fd = run.listened ? relay->connection : -1,
		 .events = (short)(POLLIN | (relay_sending(relay) ? POLLOUT : 0))},
		{.fd = relay_wants(relay, &relay->stream[0]) ? relay->stream[0].pipe : -1, .events = POLLIN},
		{.fd = relay_wants(relay, &relay->stream[1]) ? relay->stream[1].pipe : -1, .events = POLLIN},
		{.fd = run.life, .events = POLLIN},
		{.fd = input_waits(&run.input) ? run.input.pipe : -1, .events = POLLOUT},
		{.fd = run.told_start || run.launch.settled ? -1 : run.launch.status, .events = POLLIN},
	};

	if (!relay_sending(relay) && relay->linger_until != 0 && (deadline == 0 || relay->linger_until < deadline))
		deadline = relay->linger_until;

	struct timespec left = time_left(deadline);

	if (ppoll(waits, 7, deadline != 0 ? &left : NULL, NULL) < 0)
		return;
	if (waits[0].revents != 0)
		signals_drain(run.children);
	if (waits[4].revents != 0) {
		run.life = -1;
		run_end_because(&run, END_SPAWNER_LOST);
	}
	if (waits[1].revents & ~POLLOUT)
		request_read(&run);
	if (waits[5].revents != 0)
		relay_taken(relay, input_write(&run.input));
	for (int i = 0; i < 2; i++) {
		if (waits[2 + i].revents != 0)
			relay_read(relay, &relay->stream[i]);
	}
	launch_status(&run.launch, waits[6].revents);
	relay_send(relay, false);
}

/* Until the leader is gone or somebody or something ends the run. True when no child is left. */
static bool run_until_end(void)
{
	uint64_t limit_ms = run.plan.time_limit_ms;
	int64_t deadline = limit_ms == 0 ? 0 : run.started_us + (int64_t)limit_ms * 1000;

	while (run.reason == 0) {
		turn(deadline);

		bool none_left = ending_reap(&run);

		tell_start();
		if (run.leader_gone)
			run_end_because(&run, END_EXITED);
		if (none_left)
			return true;
		if (deadline != 0 && now_us() >= deadline)
			run_end_because(&run, END_TIMEOUT);
	}
	return false;
}

/* SIGTERM, to the leader's group or to all of a process, and its output goes on: git removes its lock files and says so. */
static void grace(void)
{
	uint32_t ms = run.plan.grace_ms;

	if (!run.listened || run.life < 0)
		ms = ms < LOST_GRACE_MS ? ms : LOST_GRACE_MS;
	if (ms == 0)
		return;

	int64_t deadline = now_us() + (int64_t)ms * 1000;

	if (run.plan.stdio == STDIO_EMPTY)
		killers_start(&run.killers, KILLER_TERM_GROUP, run.plan.uid, run.launch.leader);
	else
		killers_start(&run.killers, run.launch.terminal < 0 ? KILLER_TERM_TREE : KILLER_HANGUP_TREE, run.plan.uid, run.self);
	while (!(run.leader_gone && run.plan.stdio == STDIO_EMPTY) && now_us() < deadline) {
		turn(deadline);
		if (ending_reap(&run))
			return;
	}
}

static void exit_body(uint8_t body[EXIT_BODY])
{
	uint32_t flags = 0, code = 0, signal = 0;

	if (run.leader_gone && WIFEXITED(run.leader_status)) {
		flags |= EXIT_HAS_CODE;
		code = (uint32_t)WEXITSTATUS(run.leader_status);
	} else if (run.leader_gone) {
		flags |= EXIT_HAS_SIGNAL;
		signal = (uint32_t)WTERMSIG(run.leader_status);
	}
	flags |= run.relay.stream[0].cut ? EXIT_STDOUT_CUT : 0;
	flags |= run.relay.stream[1].cut ? EXIT_STDERR_CUT : 0;
	put_u32(body, run.reason);
	put_u32(body + 4, flags);
	put_u32(body + 8, code);
	put_u32(body + 12, signal);
	put_u64(body + 16, run.max_resident);
	put_u64(body + 24, run.cpu_us);
	put_u64(body + 32, (uint64_t)((run.ended_us != 0 ? run.ended_us : now_us()) - run.started_us));
}

bool run_tell_incomplete(struct run *told)
{
	uint8_t body[EXIT_BODY];

	relay_send(&told->relay, true);
	if (relay_sending(&told->relay))
		return false;
	exit_body(body);
	relay_control(&told->relay, MSG_INCOMPLETE, body);
	relay_send(&told->relay, true);
	return true;
}

/* What the run left in the pipes, then MSG_EXIT, in as few writes as the worker's reading allows. */
static void deliver(void)
{
	struct relay *relay = &run.relay;
	int64_t deadline = now_us() + DELIVER_LIMIT_US;
	uint8_t body[EXIT_BODY];
	bool told = false;

	exit_body(body);
	while (run.listened && !(told && relay_done(relay)) && now_us() < deadline) {
		bool more = false;

		for (int i = 0; i < 2; i++) {
			while (relay_wants(relay, &relay->stream[i]) && relay->stream[i].rest > 0)
				relay_read(relay, &relay->stream[i]);
			more |= relay->stream[i].rest > 0;
		}
		if (!more && !told && !relay_sending(relay)) {
			told = true;
			exit_body(body); /* with the flags of what was just read */
			relay_control(relay, MSG_EXIT, body);
		}
		relay_send(relay, true);
		if (relay_sending(relay))
			turn(deadline);
	}
}

_Noreturn void run_serve(int connection, int life, struct plan plan)
{
	int error = 0;

	run.plan = plan;
	run.self = getpid();
	run.life = life;
	run.listened = true;
	run.children = signals_watch_children();
	run.started_us = now_us();

	uint32_t failed = run.children < 0 ? STEP_PIPES : launch_start(&run.plan, &run.launch, &error);

	if (failed != 0) {
		message_send_failed(connection, failed, error != 0 ? error : errno);
		message_finish(connection);
		_exit(0);
	}
	run.input.pipe = run.launch.input;
	run.told_start = run.plan.stdio == STDIO_EMPTY;
	relay_open(&run.relay, connection, run.launch.output, run.plan.output_cap,
		   run.plan.helper || run.launch.terminal >= 0 ? 0 : TOOL_LINGER_US, run.plan.stdio == STDIO_PIPES);

	if (!run_until_end()) {
		if (!run.leader_gone)
			grace();
		ending_kill(&run);
	}
	/* Nothing of the run is left from here on. */
	run.ended_us = now_us();
	failed = run.reason == END_EXITED ? launch_failure(&run.launch, run.leader_status, &error) : 0;
	if (failed != 0) {
		message_send_failed(connection, failed, error);
	} else {
		relay_settle(&run.relay, run.launch.terminal >= 0);
		if (!run.plan.beside) /* its user may have a run that needs them */
			tmpfiles_remove(run.plan.uid);
		deliver();
	}
	message_finish(connection);
	_exit(0);
}
