/*
 * usage-walk.c: counts everything beneath one folder. See usage-walk.h.
 *
 * Each level is read to its end before the next is entered.
 */
#define _GNU_SOURCE
#include "usage-walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "clock.h"
#include "usage-folder.h"
#include "usage-list.h"

/* One descriptor each. Paths that tools can still name are at most 2,048 folders long; trees that people make, some dozens. */
#define LEVELS_MAX 512

struct level {
	struct folder folder;
	size_t name;           /* its own, an offset in the names */
	size_t next, end;      /* its folders that are still to be entered, the same */
	uint64_t bytes, files; /* what was counted before it */
};

static struct walk {
	struct counting counting;
	int depth; /* of the last level; the space is 0 */
	struct level levels[LEVELS_MAX];
} walk;

static const char *name_at(int depth)
{
	return walk.counting.names.bytes + walk.levels[depth].name;
}

/* The new level is read at once. */
static int enter(int parent, const char *path, size_t name)
{
	struct level *level = &walk.levels[walk.depth + 1];

	if (walk.depth + 1 == LEVELS_MAX)
		return USAGE_TOO_DEEP;
	if (now_us() > walk.counting.deadline_us)
		return USAGE_TOO_LATE;
	if (!folder_open(&level->folder, parent, path))
		return has_vanished(errno) && walk.depth >= 0 ? 0 : USAGE_UNREADABLE;
	walk.depth++;
	level->name = name;
	level->bytes = walk.counting.usage->bytes;
	level->files = walk.counting.usage->files;
	level->next = level->end = walk.counting.names.length;

	int failed = list_folder(&walk.counting, level->folder.fd, walk.depth == 0);

	level->end = walk.counting.names.length;
	return failed;
}

/* home/repos/<folder> and home/work/<folder>/<folder> */
static bool group_prefix(char prefix[512])
{
	if (walk.depth < 3 || strcmp(name_at(1), "home") != 0)
		return false;
	if (walk.depth == 3 && strcmp(name_at(2), "repos") == 0) {
		strcpy(prefix, "home/repos/");
		return true;
	}
	if (walk.depth != 4 || strcmp(name_at(2), "work") != 0)
		return false;
	strcpy(prefix, "home/work/");
	strncat(prefix, name_at(3), 255);
	strcat(prefix, "/");
	return true;
}

static int leave(void)
{
	const struct level *level = &walk.levels[walk.depth];
	uint64_t bytes = walk.counting.usage->bytes - level->bytes, files = walk.counting.usage->files - level->files;
	char prefix[512];
	bool kept = true;

	if (walk.depth == 1)
		kept = largest_add(&walk.counting.usage->top, "", name_at(1), bytes, files);
	else if (group_prefix(prefix))
		kept = largest_add(&walk.counting.usage->groups, prefix, name_at(walk.depth), bytes, files);
	folder_close(&level->folder);
	walk.depth--;
	return kept ? 0 : USAGE_TOO_LARGE;
}

static int next_step(void)
{
	struct level *level = &walk.levels[walk.depth];
	size_t name = level->next;

	if (name == level->end || walk.counting.usage->truncated) {
		walk.counting.names.length = level->end;
		return leave();
	}
	level->next += strlen(walk.counting.names.bytes + name) + 1;
	walk.counting.names.length = level->end;
	return enter(level->folder.fd, walk.counting.names.bytes + name, name);
}

int usage_walk(const char *path, uint64_t entries_max, int64_t deadline_us, struct usage *usage)
{
	walk.counting =
		(struct counting){.usage = usage, .entries_max = entries_max, .deadline_us = deadline_us};
	walk.depth = -1;

	int failed = enter(AT_FDCWD, path, 0);

	while (walk.depth >= 0 && failed == 0)
		failed = next_step();
	/* Whatever happened, folders that were opened up are closed again. */
	for (; walk.depth >= 0; walk.depth--)
		folder_close(&walk.levels[walk.depth].folder);
	return failed;
}
