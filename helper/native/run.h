/*
 * run.h: one run, from its plan to MSG_EXIT.
 *
 * Purpose    Starts the tool, relays its output, keeps the time limit, watches the connection and the spawner's life,
 *            ends all that the tool started, and says how it went.
 *            A helper is a run that starts undropped, reads what the worker writes to it, and whose user has runs beside it.
 * Rights     The supervisor's: (K, 0, 0) with the three capabilities.
 * Used by    supervisor.c; request.c and ending.c, for what they hold of it.
 * Fails      by MSG_FAILED when the tool has not run. Once it has, MSG_EXIT is sent only when nothing is left.
 */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "input.h"
#include "killer.h"
#include "launch.h"
#include "plan.h"
#include "relay.h"
#include "request.h"

struct run {
	struct plan plan;
	struct launch launch;
	struct relay relay;
	struct killers killers;
	pid_t self;
	int children; /* signals_watch_children() */
	int life;     /* the spawner's */

	int64_t started_us;
	int64_t ended_us; /* nothing was left; 0 = not yet */
	uint32_t reason; /* 0 while it runs, then END_* */
	bool listened;   /* false: the connection is closed or broke the protocol */
	bool told_start; /* or nobody wants to know */
	bool leader_gone;
	int leader_status;
	uint64_t cpu_us;
	uint64_t max_resident;

	struct request request;
	struct input input;
};

_Noreturn void run_serve(int connection, int life, struct plan plan);
/* The first reason counts. */
void run_end_because(struct run *run, uint32_t reason);
/* The connection's end, or something that is not allowed there: nobody is there to be told. */
void run_lost(struct run *run);
/* False when the worker takes nothing just now: to be tried again. */
bool run_tell_incomplete(struct run *run);

#endif
