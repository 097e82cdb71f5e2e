/*
 * usage-report.h: the report of a count.
 *
 * Purpose    Writes what worker/usage/report.ts reads. Records, each ended by one NUL, since a name can hold every other byte:
 *
 *              usage 1 <bytes> <files> <dirs> <links> <truncated> <dropped> <top> <groups>
 *              <bytes> <files> <name>          one for each of `top`, largest first
 *              <bytes> <files> <path>          one for each of `groups`, relative to the space, largest first
 *
 *            Numbers are decimal, without leading zeros, at most USAGE_BYTES_MAX; `truncated` (the entries ran out) and
 *            `dropped` (there were more groups) are 0 or 1; `top` and `groups` are how many of each follow.
 * Rights     None.
 * Used by    usage.c.
 * Fails      report_write returns false.
 */
#ifndef USAGE_REPORT_H
#define USAGE_REPORT_H

#include <stdbool.h>

#include "usage.h"

/* Sorts the lists. */
bool report_write(struct usage *usage);

#endif
