/*
 * usage-folder.c: opens one folder of the user for the count. See usage-folder.h.
 */
#define _GNU_SOURCE
#include "usage-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reading takes the first, looking at what is in it the second. */
#define NEEDED (S_IRUSR | S_IXUSR)

/* O_PATH needs no right on the folder itself; chmod and open through /proc reach exactly what it holds. */
static int open_closed(struct folder *folder, int parent, const char *name)
{
	struct stat st;
	char self[64];
	int fixed = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = -1, error;

	if (fixed < 0)
		return -1;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fixed);
	if (fstat(fixed, &st) == 0 && chmod(self, (st.st_mode & 07777) | NEEDED) == 0) {
		folder->opened_up = true;
		folder->mode = st.st_mode & 07777;
		fd = open(self, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = errno;
		if (fd < 0)
			chmod(self, folder->mode);
		errno = error;
	}
	error = errno;
	close(fixed);
	errno = error;
	return fd;
}

bool folder_open(struct folder *folder, int parent, const char *name)
{
	struct stat st;

	*folder = (struct folder){.fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	if (folder->fd < 0 && errno == EACCES)
		folder->fd = open_closed(folder, parent, name);
	if (folder->fd < 0)
		return false;
	/* It can be read and yet let nobody in. Only its owner can mend that; another's may be open to all. */
	if (!folder->opened_up && fstat(folder->fd, &st) == 0 && st.st_uid == geteuid() &&
	    (st.st_mode & NEEDED) != NEEDED && fchmod(folder->fd, (st.st_mode & 07777) | NEEDED) == 0) {
		folder->opened_up = true;
		folder->mode = st.st_mode & 07777;
	}
	return true;
}

void folder_close(const struct folder *folder)
{
	struct stat st;

	/* A mode that its owner gave it meanwhile stays. */
	if (folder->opened_up && fstat(folder->fd, &st) == 0 && (st.st_mode & 07777) == (folder->mode | NEEDED))
		fchmod(folder->fd, folder->mode);
	close(folder->fd);
}
