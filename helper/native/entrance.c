/*
 * entrance.c: the spawner's lock and its socket. See entrance.h.
 */
#define _GNU_SOURCE
#include "entrance.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "say.h"

#define LOCK_LIMIT_US 10000000
#define LOCK_RETRY_MS 50

int entrance_lock(const char *path)
{
	struct stat st;
	int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int64_t limit = now_us() + LOCK_LIMIT_US;

	if (lock < 0 || fstat(lock, &st) != 0) {
		say_errno("the lock file can't be opened", errno);
		return -1;
	}
	/* A file that others can open could be locked by them for ever. */
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 077) != 0) {
		say("the lock file must be a plain file of root's, mode 0600");
		return -1;
	}
	while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
		struct pollfd lifeline = {.fd = STDIN_FILENO, .events = 0};

		if (errno != EWOULDBLOCK && errno != EINTR) {
			say_errno("the lock file can't be locked", errno);
			return -1;
		}
		if (now_us() >= limit) {
			say("another worker, or runs of an earlier one, still use this work dir");
			return -1;
		}
		/* The kernel has no event for a lock that becomes free, with a bound. */
		if (poll(&lifeline, 1, LOCK_RETRY_MS) > 0)
			return -1;
	}
	return lock;
}

/* The folder's own mode is what keeps strangers out: a socket's mode is set only after bind. */
static bool folder_is_private(const char *socket_path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(socket_path, '/');
	struct stat st;
	bool sound;

	if (slash == NULL || slash == socket_path || (size_t)(slash - socket_path) >= sizeof folder)
		return false;
	memcpy(folder, socket_path, (size_t)(slash - socket_path));
	folder[slash - socket_path] = 0;

	int fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return false;
	sound = fstat(fd, &st) == 0 && st.st_uid == 0 && (st.st_mode & 07777) == 0700;
	close(fd);
	return sound;
}

int entrance_listen(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof address.sun_path) {
		say("the path of the socket is too long");
		return -1;
	}
	if (!folder_is_private(path)) {
		say("the folder of the socket must be root's, mode 0700");
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path));
	if (unlink(path) != 0 && errno != ENOENT) {
		say_errno("a stale socket can't be removed", errno);
		return -1;
	}

	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || chmod(path, 0600) != 0 ||
	    listen(fd, SOMAXCONN) != 0) {
		say_errno("the socket can't be made", errno);
		return -1;
	}
	return fd;
}
