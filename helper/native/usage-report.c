/*
 * usage-report.c: the report of a count. See usage-report.h.
 */
#include "usage-report.h"

#include <inttypes.h>
#include <stdio.h>

static bool write_list(struct largest *list)
{
	largest_sort(list);
	for (size_t i = 0; i < list->count; i++) {
		const struct named *item = &list->items[i];

		if (printf("%" PRIu64 " %" PRIu64 " %s%c", item->bytes, item->files, item->name, 0) < 0)
			return false;
	}
	return true;
}

bool report_write(struct usage *usage)
{
	static char buffer[65536];

	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	if (printf("usage 1 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %zu %zu%c", usage->bytes, usage->files,
		   usage->dirs, usage->links, usage->truncated, usage->groups.dropped, usage->top.count,
		   usage->groups.count, 0) < 0)
		return false;
	return write_list(&usage->top) && write_list(&usage->groups) && fflush(stdout) == 0;
}
