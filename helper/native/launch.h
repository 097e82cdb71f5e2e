/*
 * launch.h: from a plan to a running tool.
 *
 * Purpose    Checks the space, makes the pipes or the terminal, forks, and takes the child through its steps to execve. A helper has no
 *            space yet, and a pipe as standard input.
 * Rights     In: the supervisor's (K, 0, 0) with CAP_CHOWN, CAP_SETGID, CAP_SETUID. Out: the tool has its user's
 *            ids, no capability, no_new_privs, its limits, and the descriptors 0, 1, 2. A helper has root's ids instead
 *            and the three capabilities.
 * Used by    run.c.
 * Fails      with the step and errno; the tool has then not run. Refusals of the space: ENOTDIR no folder or a
 *            link, EPERM wrong owner, EACCES wrong mode.
 *
 * When is it sure that the tool ran? execve can pass its point of no return and then die because an address limit
 * leaves no room to map the program. So with such a limit the child is traced from before it drops until the
 * kernel's exec stop, which comes after the program was loaded and before its first instruction. Without a limit
 * the status pipe is enough: it holds a report, or nothing.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "plan.h"

struct launch {
	pid_t leader;
	int input;     /* the writing end of its stdin, non-blocking; -1 = it has none */
	int output[2]; /* the reading ends of its stdout and stderr, non-blocking; a helper has no stderr, a terminal one: -1 */
	int terminal;  /* our end of its terminal; -1 = it has none */
	int held;      /* the tool's end of it, held: with none open reading would fail, though it may be opened again */
	int status;    /* the child's report, if it fails before exec */
	bool traced;   /* an address limit is set: wait for the exec stop */
	bool settled;  /* the status pipe has a report, or was closed without one */
	bool executed; /* it was closed without one */
	bool optioned; /* its first stop was seen */
	bool loaded;   /* the exec stop was seen */
};

/* 0, or a STEP_* with the errno in `error`. */
uint32_t launch_start(const struct plan *plan, struct launch *launch, int *error);
/* A stop of the leader that wait() reported. */
void launch_stopped(struct launch *launch, int status);
/* What poll() says of `status`. */
void launch_status(struct launch *launch, short events);
/* Whether it is sure already that the tool was executed. */
bool launch_is_done(const struct launch *launch);
/* After the leader's end: 0, or the step at which it failed before the tool ran. */
uint32_t launch_failure(const struct launch *launch, int status, int *error);

#endif
