/*
 * usage-walk.h: counts everything beneath one folder.
 *
 * Purpose    Sums of apparent sizes, numbers of files, folders and links, and the share of each direct entry of the space
 *            and of each home/repos/<folder> and home/work/<folder>/<folder>. Links are counted, never followed;
 *            every step goes down from a held descriptor. A file counts once for each of its names.
 * Rights     The user's own.
 * Used by    usage.c.
 * Fails      with a status of usage.h: nothing of what was counted may be used then. Bounded, whatever the user's
 *            processes do meanwhile: in entries, levels, memory and time.
 */
#ifndef USAGE_WALK_H
#define USAGE_WALK_H

#include <stdint.h>

#include "usage.h"

/* Counts beneath the folder `path`. `top` and `groups` must be open. 0 or a status of usage.h. */
int usage_walk(const char *path, uint64_t entries_max, int64_t deadline_us, struct usage *usage);

#endif
