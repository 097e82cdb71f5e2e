/*
 * usage.h: what a user's space holds, counted.
 *
 * Purpose    usage <entries> <listed> <milliseconds>, with SPACE=<absolute path> as its environment. Counts all
 *            beneath the space and writes one report to standard output (usage-report.h), or nothing: a report is
 *            given only when everything was read, or when the entries ran out (it then says so).
 * Rights     The user's own, none other: it is launched like any tool, through the spawner.
 * Called by  worker/usage/scan.ts, by way of the spawner.
 * Fails      with one of the exit statuses below and no report.
 */
#ifndef USAGE_H
#define USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "usage-largest.h"

/* worker/usage/scan.ts restates them. */
#define USAGE_UNREADABLE 2 /* something could not be read: what it holds is not known */
#define USAGE_TOO_DEEP 3   /* folders in folders beyond what is followed */
#define USAGE_TOO_LATE 4   /* the time ran out */
#define USAGE_TOO_LARGE 5  /* no memory, or more names than are kept */
#define USAGE_MISUSED 64   /* wrong arguments */

/* What a JavaScript number holds exactly; a sparse file can be larger, and sums stay here. */
#define USAGE_BYTES_MAX 9007199254740991U

struct usage {
	uint64_t bytes, files, dirs, links;
	bool truncated;
	struct largest top, groups;
};

int usage_main(char *const numbers[3]);

#endif
