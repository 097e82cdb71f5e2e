/*
 * usage.c: what a user's space holds, counted. See usage.h.
 */
#define _GNU_SOURCE
#include "usage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "clock.h"
#include "say.h"
#include "usage-report.h"
#include "usage-walk.h"

/* Ten times what is ever asked for; keeps all sums within their types. */
#define ENTRIES_MAX 5000000
#define LISTED_MAX 10000
#define MILLISECONDS_MAX 600000

static bool number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	if (*text < '1' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno == 0 && *end == 0 && *value <= max;
}

int usage_main(char *const numbers[3])
{
	const int64_t started_us = now_us();
	const char *space = getenv("SPACE");
	uint64_t entries, listed, milliseconds;
	struct usage usage = {0};

	/* The user's own processes could otherwise trace this one, or write to its standard output, and have it say less. */
	prctl(PR_SET_DUMPABLE, 0);
	say_as("usage");
	if (space == NULL || *space != '/' || !number(numbers[0], ENTRIES_MAX, &entries) ||
	    !number(numbers[1], LISTED_MAX, &listed) || !number(numbers[2], MILLISECONDS_MAX, &milliseconds)) {
		say("arguments: <entries> <listed> <milliseconds>, and SPACE in the environment");
		return USAGE_MISUSED;
	}
	if (!largest_open(&usage.top, listed) || !largest_open(&usage.groups, listed))
		return USAGE_TOO_LARGE;

	int failed = usage_walk(space, entries, started_us + (int64_t)milliseconds * 1000, &usage);

	if (failed != 0)
		return failed;
	return report_write(&usage) ? 0 : USAGE_UNREADABLE;
}
