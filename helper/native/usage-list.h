/*
 * usage-list.h: counts what is directly in one folder.
 *
 * Purpose    Reads a folder to its end, counts each entry, and keeps the names of the folders in it for the walk. One buffer
 *            serves all, and a folder that grows all the time holds the count up only until the entries run out.
 * Rights     The user's own.
 * Used by    usage-walk.c.
 * Fails      with a status of usage.h.
 */
#ifndef USAGE_LIST_H
#define USAGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "usage.h"

/* Names of folders that are still to be entered, each ended by its NUL; all levels together, at most NAMES_MAX. */
struct names {
	char *bytes;
	size_t length, room;
};

struct counting {
	struct usage *usage;
	uint64_t entries, entries_max;
	int64_t deadline_us;
	struct names names;
};

/* `is_space`: what is directly in it is listed by itself. */
int list_folder(struct counting *counting, int folder, bool is_space);
/* Whether an errno says that nothing, or something else, is there any more. */
bool has_vanished(int error);

#endif
