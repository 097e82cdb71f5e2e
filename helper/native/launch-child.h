/*
 * launch-child.h: the child's steps between fork and exec.
 *
 * Purpose    A straight list in the order of wire.h's steps; each that fails is reported with its errno, and the
 *            tool does not run.
 * Rights     In: the supervisor's. Out: the user's; a helper's are root's with the three capabilities.
 * Used by    launch.c.
 * Fails      by a report on the status pipe and exit status 127.
 */
#ifndef LAUNCH_CHILD_H
#define LAUNCH_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

struct child_setup {
	const struct plan *plan;
	int space;       /* the checked space, O_PATH; -1 for a helper */
	int in, out, err; /* what becomes 0, 1, 2 */
	int status;
	bool traced;
};

struct child_report {
	uint32_t step;
	int32_t error;
};

_Noreturn void child_main(const struct child_setup *setup);

#endif
