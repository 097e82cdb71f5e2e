/*
 * ending.c: until nothing of a run is left. See ending.h.
 *
 * First walks, which spare the user's processes outside the run (a file helper). After WALKS passes or WALKS_US, when
 * a walk finds too much, or when a killer is slow (its user starves it), everything of that user goes in one call
 * that no fork escapes.
 * What runs beside its user's run (a helper, a count) is one process. It alone is aimed at, with more killers rather than
 * harder ones: that its exit is slow is no reason to end its user's run. Everything goes only after ALONE_US, and only
 * for what its user did: trace it, and so hold what was killed, or have it fork.
 * While a helper is root's it is killed as root's own child; once its user is named, as both, since it drops when it
 * likes: whenever it is looked at one of the two is true, and the next pass makes up for a look in between.
 */
#define _GNU_SOURCE
#include "ending.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "killer.h"
#include "processes.h"
#include "relay.h"
#include "signals.h"
#include "wire.h"

#define WALKS 20
#define WALKS_US 200000
#define ALONE_US 1000000
#define KILLER_SLOW_US 50000
#define WALK_AGAIN_US 8000
#define ALL_AGAIN_US 250000
/* At most so many exits are taken in one go, so that a chain of forks can't keep the supervisor here. */
#define REAP_MAX 1024

static void count_usage(struct run *run, const struct rusage *usage)
{
	uint64_t resident = (uint64_t)usage->ru_maxrss * 1024;

	run->cpu_us += (uint64_t)usage->ru_utime.tv_sec * 1000000 + (uint64_t)usage->ru_utime.tv_usec;
	run->cpu_us += (uint64_t)usage->ru_stime.tv_sec * 1000000 + (uint64_t)usage->ru_stime.tv_usec;
	if (resident > run->max_resident)
		run->max_resident = resident;
}

bool ending_reap(struct run *run)
{
	for (int i = 0; i < REAP_MAX; i++) {
		struct rusage usage;
		int status;
		/* __WALL: also children whose parent asked for another signal than SIGCHLD at their end. */
		pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);

		if (pid < 0)
			return errno == ECHILD;
		if (pid == 0)
			return false;
		if (!WIFEXITED(status) && !WIFSIGNALED(status)) {
			/* A stop, which only the tracer of a process sees. It is no exit. */
			if (pid == run->launch.leader)
				launch_stopped(&run->launch, status);
			continue;
		}
		if (killers_took(&run->killers, pid))
			continue;
		count_usage(run, &usage);
		if (pid == run->launch.leader && !run->leader_gone) {
			run->leader_gone = true;
			run->leader_status = status;
		}
	}
	return false;
}

/* Waits for an exit, at most until the deadline. A stalled worker gets its message meanwhile, if it can take it. */
static void wait_for_exit(struct run *run, int64_t deadline_us)
{
	struct pollfd waits[2] = {
		{.fd = run->children, .events = POLLIN},
		{.fd = relay_sending(&run->relay) ? run->relay.connection : -1, .events = POLLOUT},
	};
	struct timespec left = time_left(deadline_us);

	ppoll(waits, 2, &left, NULL);
	signals_drain(run->children);
	if (waits[1].revents != 0)
		relay_send(&run->relay, true);
}

/* Reaps until the deadline, or until no killer is at work any more if that is asked. True when no child is left. */
static bool reap_until(struct run *run, int64_t deadline_us, bool killers_only)
{
	do {
		if (ending_reap(run))
			return true;
		if (killers_only && !killers_at_work(&run->killers))
			return false;
		wait_for_exit(run, deadline_us);
	} while (now_us() < deadline_us);
	return ending_reap(run);
}

static bool is_traced(pid_t pid)
{
	struct process process;

	return process_read(pid, &process) && process.traced;
}

static enum killer_job job_for(const struct run *run, int pass, int64_t spent_us, bool slow)
{
	if (run->plan.beside) {
		bool by_its_user = spent_us > ALONE_US && (run->leader_gone || is_traced(run->launch.leader));

		return by_its_user ? KILLER_ALL : KILLER_CHILDREN;
	}
	return slow || pass >= WALKS || spent_us > WALKS_US ? KILLER_ALL : KILLER_WALK;
}

void ending_kill(struct run *run)
{
	int64_t start = now_us(), pause = 500;
	bool slow = false, told = false;

	for (int pass = 0; !ending_reap(run); pass++) {
		enum killer_job job = job_for(run, pass, now_us() - start, slow);

		if (run->plan.helper)
			kill_own_children(&run->killers);
		if (run->plan.uid != 0)
			killers_start(&run->killers, job, run->plan.uid, run->self);
		if (reap_until(run, now_us() + KILLER_SLOW_US, true))
			return;
		/* What was killed needs a moment to be gone; each exit wakes us. */
		if (killers_at_work(&run->killers))
			slow = true;
		else if (reap_until(run, now_us() + pause, false))
			return;
		/* Each call takes time from those that are exiting. */
		if (pause < (job == KILLER_ALL ? ALL_AGAIN_US : WALK_AGAIN_US))
			pause *= 2;
		if (!told && now_us() - start > (int64_t)END_LIMIT_MS * 1000)
			told = run_tell_incomplete(run);
	}
}
