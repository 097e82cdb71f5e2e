/*
 * usage-largest.h: the largest of any number of named things, in bounded memory.
 *
 * Purpose    A user can make as many groups as there are entries; the largest are kept, and whether any was not.
 * Rights     None.
 * Used by    usage-walk.c, usage-report.c.
 * Fails      largest_add returns false without memory; the list is then worth nothing.
 */
#ifndef USAGE_LARGEST_H
#define USAGE_LARGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct named {
	char *name; /* bytes, no NUL within */
	uint64_t bytes;
	uint64_t files;
};

struct largest {
	struct named *items; /* a heap, the smallest first; in order after largest_sort */
	size_t count, max;
	bool dropped;
};

bool largest_open(struct largest *list, size_t max);
/* Copies the name: `prefix`, then `name`. */
bool largest_add(struct largest *list, const char *prefix, const char *name, uint64_t bytes, uint64_t files);
/* Largest first; equal ones by name, so that the same tree gives the same report. */
void largest_sort(struct largest *list);

#endif
