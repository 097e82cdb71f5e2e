/*
 * usage-walk.c: counts everything beneath one folder. See usage-walk.h.
 *
 * Each level is read to its end before the next is entered: one buffer serves all, and a folder that grows all the time
 * holds the walk up no longer than until the entries run out.
 */
#define _GNU_SOURCE
#include "usage-walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "usage-folder.h"
#include "usage.h"

/* One descriptor each. Paths that tools can still name are at most 2,048 folders long; trees that people make, some dozens. */
#define LEVELS_MAX 512
/* Names of folders that are still to be entered, all levels together, bytes. */
#define NAMES_MAX 33554432
#define NAMES_FIRST 65536
#define LIST_BYTES 262144
/* The clock is asked once for so many entries. */
#define CLOCK_EVERY 256

struct level {
	struct folder folder;
	size_t name;       /* its own, an offset in `names` */
	size_t next, end;  /* its folders that are still to be entered, the same */
	uint64_t bytes, files; /* what was counted before it */
};

static struct walk {
	struct usage *usage;
	uint64_t entries, entries_max;
	int64_t deadline_us;
	char *names;
	size_t names_length, names_room;
	int depth; /* of the last level; the space is 0 */
	struct level levels[LEVELS_MAX];
} walk;

static uint64_t list_buffer[LIST_BYTES / sizeof(uint64_t)];

static const char *name_at(int depth)
{
	return walk.names + walk.levels[depth].name;
}

static bool keep_name(const char *name)
{
	size_t length = strlen(name) + 1;

	if (walk.names_length + length > walk.names_room) {
		size_t room = walk.names_room == 0 ? NAMES_FIRST : 2 * walk.names_room;
		char *more = room > NAMES_MAX ? NULL : realloc(walk.names, room);

		if (more == NULL)
			return false;
		walk.names = more;
		walk.names_room = room;
	}
	memcpy(walk.names + walk.names_length, name, length);
	walk.names_length += length;
	return true;
}

static uint64_t plus(uint64_t bytes, off_t size)
{
	uint64_t more = size < 0 ? 0 : (uint64_t)size;

	return more > USAGE_BYTES_MAX - bytes ? USAGE_BYTES_MAX : bytes + more;
}

static bool has_vanished(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

static int count_file(const struct level *level, const char *name, off_t size)
{
	uint64_t before = walk.usage->bytes;

	walk.usage->bytes = plus(before, size);
	walk.usage->files++;
	if (level == &walk.levels[0] && !largest_add(&walk.usage->top, "", name, walk.usage->bytes - before, 1))
		return USAGE_TOO_LARGE;
	return 0;
}

/* Pipes, sockets and devices hold nothing; they are entries and no more. */
static int count_entry(const struct level *level, const char *name, unsigned char type)
{
	struct stat st;

	if (type == DT_REG || type == DT_UNKNOWN) {
		if (fstatat(level->folder.fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return has_vanished(errno) ? 0 : USAGE_UNREADABLE;
		type = (unsigned char)IFTODT(st.st_mode);
	}
	if (type == DT_REG)
		return count_file(level, name, st.st_size);
	if (type == DT_DIR) {
		walk.usage->dirs++;
		return keep_name(name) ? 0 : USAGE_TOO_LARGE;
	}
	if (type == DT_LNK)
		walk.usage->links++;
	if (level == &walk.levels[0] && !largest_add(&walk.usage->top, "", name, 0, 0))
		return USAGE_TOO_LARGE;
	return 0;
}

/* Entries are counted before they are looked at: one that is gone again was work too. */
static int take(const struct level *level, const struct dirent64 *entry)
{
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	if (walk.entries == walk.entries_max) {
		walk.usage->truncated = true;
		return 0;
	}
	if (walk.entries++ % CLOCK_EVERY == 0 && now_us() > walk.deadline_us)
		return USAGE_TOO_LATE;
	return count_entry(level, entry->d_name, entry->d_type);
}

static int list(struct level *level)
{
	level->next = walk.names_length;
	while (!walk.usage->truncated) {
		ssize_t read = getdents64(level->folder.fd, list_buffer, sizeof list_buffer);

		if (read < 0)
			return errno == ENOENT ? 0 : USAGE_UNREADABLE;
		if (read == 0)
			break;
		for (ssize_t at = 0; at < read && !walk.usage->truncated;) {
			const struct dirent64 *entry = (const void *)((const char *)list_buffer + at);
			int failed = take(level, entry);

			if (failed != 0)
				return failed;
			at += entry->d_reclen;
		}
	}
	level->end = walk.names_length;
	return 0;
}

/* The new level is read at once. */
static int enter(int parent, const char *path, size_t name)
{
	struct level *level = &walk.levels[walk.depth + 1];

	if (walk.depth + 1 == LEVELS_MAX)
		return USAGE_TOO_DEEP;
	if (now_us() > walk.deadline_us)
		return USAGE_TOO_LATE;
	if (!folder_open(&level->folder, parent, path))
		return has_vanished(errno) && walk.depth >= 0 ? 0 : USAGE_UNREADABLE;
	walk.depth++;
	level->name = name;
	level->bytes = walk.usage->bytes;
	level->files = walk.usage->files;
	level->next = level->end = walk.names_length;
	return list(level);
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
	uint64_t bytes = walk.usage->bytes - level->bytes, files = walk.usage->files - level->files;
	char prefix[512];
	bool kept = true;

	if (walk.depth == 1)
		kept = largest_add(&walk.usage->top, "", name_at(1), bytes, files);
	else if (group_prefix(prefix))
		kept = largest_add(&walk.usage->groups, prefix, name_at(walk.depth), bytes, files);
	folder_close(&level->folder);
	walk.depth--;
	return kept ? 0 : USAGE_TOO_LARGE;
}

static int next_step(void)
{
	struct level *level = &walk.levels[walk.depth];
	size_t name = level->next;

	if (name == level->end || walk.usage->truncated) {
		walk.names_length = level->end;
		return leave();
	}
	level->next += strlen(walk.names + name) + 1;
	walk.names_length = level->end;
	return enter(level->folder.fd, walk.names + name, name);
}

int usage_walk(const char *path, uint64_t entries_max, int64_t deadline_us, struct usage *usage)
{
	walk.usage = usage;
	walk.entries_max = entries_max;
	walk.deadline_us = deadline_us;
	walk.depth = -1;

	int failed = enter(AT_FDCWD, path, 0);

	while (walk.depth >= 0 && failed == 0)
		failed = next_step();
	/* Whatever happened, folders that were opened up are closed again. */
	for (; walk.depth >= 0; walk.depth--)
		folder_close(&walk.levels[walk.depth].folder);
	return failed;
}
