/*
 * usage-list.c: counts what is directly in one folder. See usage-list.h.
 */
#define _GNU_SOURCE
#include "usage-list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

#define NAMES_MAX 33554432
#define NAMES_FIRST 65536
#define LIST_BYTES 262144
/* The clock is asked once for so many entries. */
#define CLOCK_EVERY 256

static uint64_t list_buffer[LIST_BYTES / sizeof(uint64_t)];

bool has_vanished(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

static bool keep_name(struct names *names, const char *name)
{
	size_t length = strlen(name) + 1;

	if (names->length + length > names->room) {
		size_t room = names->room == 0 ? NAMES_FIRST : 2 * names->room;
		char *more = room > NAMES_MAX ? NULL : realloc(names->bytes, room);

		if (more == NULL)
			return false;
		names->bytes = more;
		names->room = room;
	}
	memcpy(names->bytes + names->length, name, length);
	names->length += length;
	return true;
}

static uint64_t plus(uint64_t bytes, off_t size)
{
	uint64_t more = size < 0 ? 0 : (uint64_t)size;

	return more > USAGE_BYTES_MAX - bytes ? USAGE_BYTES_MAX : bytes + more;
}

static int count_file(struct counting *counting, bool is_space, const char *name, off_t size)
{
	uint64_t before = counting->usage->bytes;

	counting->usage->bytes = plus(before, size);
	counting->usage->files++;
	if (is_space && !largest_add(&counting->usage->top, "", name, counting->usage->bytes - before, 1))
		return USAGE_TOO_LARGE;
	return 0;
}

/* Pipes, sockets and devices hold nothing; they are entries and no more. */
static int count_entry(struct counting *counting, int folder, bool is_space, const char *name, unsigned char type)
{
	struct stat st;

	if (type == DT_REG || type == DT_UNKNOWN) {
		if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return has_vanished(errno) ? 0 : USAGE_UNREADABLE;
		type = (unsigned char)IFTODT(st.st_mode);
	}
	if (type == DT_REG)
		return count_file(counting, is_space, name, st.st_size);
	if (type == DT_DIR) {
		counting->usage->dirs++;
		return keep_name(&counting->names, name) ? 0 : USAGE_TOO_LARGE;
	}
	if (type == DT_LNK)
		counting->usage->links++;
	if (is_space && !largest_add(&counting->usage->top, "", name, 0, 0))
		return USAGE_TOO_LARGE;
	return 0;
}

/* Entries are counted before they are looked at: one that is gone again was work too. */
static int take(struct counting *counting, int folder, bool is_space, const struct dirent64 *entry)
{
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	if (counting->entries == counting->entries_max) {
		counting->usage->truncated = true;
		return 0;
	}
	if (counting->entries++ % CLOCK_EVERY == 0 && now_us() > counting->deadline_us)
		return USAGE_TOO_LATE;
	return count_entry(counting, folder, is_space, entry->d_name, entry->d_type);
}

int list_folder(struct counting *counting, int folder, bool is_space)
{
	while (!counting->usage->truncated) {
		ssize_t read = getdents64(folder, list_buffer, sizeof list_buffer);

		if (read < 0)
			return errno == ENOENT ? 0 : USAGE_UNREADABLE;
		if (read == 0)
			break;
		for (ssize_t at = 0; at < read && !counting->usage->truncated;) {
			const struct dirent64 *entry = (const void *)((const char *)list_buffer + at);
			int failed = take(counting, folder, is_space, entry);

			if (failed != 0)
				return failed;
			at += entry->d_reclen;
		}
	}
	return 0;
}
