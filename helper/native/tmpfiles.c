/*
 * tmpfiles.c: what a run left in the folders that everybody may write to. See tmpfiles.h.
 */
#define _GNU_SOURCE
#include "tmpfiles.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "drop.h"
#include "killer.h"

#define ENTRIES_MAX 4096
#define REMOVALS_MAX 65536
#define DEPTH_MAX 64
#define CLEAN_LIMIT_US 1000000

static const char *const folders[] = {"/tmp", "/dev/shm", "/dev/mqueue"};

static int removals;

static bool is_self_or_parent(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool owned_by(int folder, const char *name, uid_t user, struct stat *st)
{
	return fstatat(folder, name, st, AT_SYMLINK_NOFOLLOW) == 0 && st->st_uid == user;
}

/* Opens a folder of the user for reading, never through a link; one of mode 000 is opened up first. */
static int open_folder(int parent, const char *name, uid_t user)
{
	struct stat st;
	char self[64];
	int fixed = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int folder = -1;

	if (fixed < 0)
		return -1;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fixed);
	if (fstat(fixed, &st) == 0 && st.st_uid == user &&
	    ((st.st_mode & 0700) == 0700 || chmod(self, 0700) == 0))
		folder = open(self, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(fixed);
	return folder;
}

/* Takes over the descriptor. The recursion is bounded: each level holds one descriptor. */
static void remove_owned(int folder, uid_t user, int depth)
{
	DIR *list = fdopendir(folder);
	struct dirent *entry;
	struct stat st;

	if (list == NULL) {
		close(folder);
		return;
	}
	while ((entry = readdir(list)) != NULL && removals < REMOVALS_MAX) {
		if (is_self_or_parent(entry->d_name) || !owned_by(folder, entry->d_name, user, &st))
			continue;
		removals++;
		if (!S_ISDIR(st.st_mode)) {
			unlinkat(folder, entry->d_name, 0);
			continue;
		}
		int below = depth < DEPTH_MAX ? open_folder(folder, entry->d_name, user) : -1;

		if (below >= 0)
			remove_owned(below, user, depth + 1);
		unlinkat(folder, entry->d_name, AT_REMOVEDIR);
	}
	closedir(list);
}

static _Noreturn void cleaner_main(uid_t user)
{
	close_range(0, ~0U, 0);
	if (drop_to(user, user) != 0)
		_exit(1);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		int folder = open(folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (folder >= 0)
			remove_owned(folder, user, 0);
	}
	_exit(0);
}

/* Most runs leave nothing: looking costs less than a child. */
static bool something_left(const char *path, uid_t user)
{
	DIR *list = opendir(path);
	struct dirent *entry;
	struct stat st;
	bool found = false;

	if (list == NULL)
		return false;
	for (int i = 0; i < ENTRIES_MAX && !found && (entry = readdir(list)) != NULL; i++)
		found = !is_self_or_parent(entry->d_name) && owned_by(dirfd(list), entry->d_name, user, &st);
	closedir(list);
	return found;
}

/* Waits for every child; from the limit on with a killer each round. */
static void wait_for_cleaner(uid_t user)
{
	struct killers killers = {{0}};
	int64_t limit = now_us() + CLEAN_LIMIT_US;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0) {
		if (pid > 0) {
			killers_took(&killers, pid);
			continue;
		}
		if (now_us() > limit)
			killers_start(&killers, KILLER_WALK, user, getpid());
		poll(NULL, 0, 1);
	}
}

void tmpfiles_remove(uid_t user)
{
	bool found = false;

	for (size_t i = 0; i < sizeof folders / sizeof *folders && !found; i++)
		found = something_left(folders[i], user);
	if (!found)
		return;

	pid_t cleaner = fork();

	if (cleaner == 0)
		cleaner_main(user);
	if (cleaner > 0)
		wait_for_cleaner(user);
}
