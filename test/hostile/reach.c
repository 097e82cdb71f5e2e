/*
 * reach.c: tries, as whoever runs it, to reach one thing that belongs to somebody else, and prints the errno of the
 * attempt as a number; 0 means that it worked. A shell's own words for the same are not the same everywhere.
 *
 *   reach list PATH | read PATH | write PATH | enter PATH | remove PATH     a file or folder
 *   reach connect PATH                                                     a socket
 *   reach signal PID NUMBER | trace PID | peek PID | limit PID             a process
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static int list(const char *path)
{
	DIR *folder = opendir(path);

	return folder == NULL ? errno : readdir(folder) == NULL && errno != 0 ? errno : 0;
}

static int open_as(const char *path, int flags)
{
	char byte;
	int file = open(path, flags, 0600);

	if (file < 0)
		return errno;
	return (flags & O_ACCMODE) == O_RDONLY && read(file, &byte, 1) < 0 ? errno : 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int peer = socket(AF_UNIX, SOCK_STREAM, 0);

	if (peer < 0 || strlen(path) >= sizeof address.sun_path)
		return peer < 0 ? errno : ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	return connect(peer, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
}

/* Reads a byte of the other's memory at an address that is mapped here; EFAULT means that it was let in. */
static int peek(pid_t pid)
{
	static char mapped;
	char here;
	struct iovec to = {.iov_base = &here, .iov_len = 1};
	struct iovec from = {.iov_base = &mapped, .iov_len = 1};

	return process_vm_readv(pid, &to, 1, &from, 1, 0) >= 0 || errno == EFAULT ? 0 : errno;
}

static int limit(pid_t pid)
{
	struct rlimit none = {0, 0};

	return prlimit(pid, RLIMIT_NOFILE, &none, NULL) == 0 ? 0 : errno;
}

static int reach(int count, char **args)
{
	const char *what = args[0], *target = args[1];
	pid_t pid = (pid_t)atoi(target);

	errno = 0;
	if (strcmp(what, "list") == 0)
		return list(target);
	if (strcmp(what, "read") == 0)
		return open_as(target, O_RDONLY | O_NONBLOCK);
	if (strcmp(what, "write") == 0)
		return open_as(target, O_WRONLY | O_CREAT);
	if (strcmp(what, "enter") == 0)
		return chdir(target) == 0 ? 0 : errno;
	if (strcmp(what, "remove") == 0)
		return unlink(target) == 0 || (errno == EISDIR && rmdir(target) == 0) ? 0 : errno;
	if (strcmp(what, "connect") == 0)
		return connect_to(target);
	if (strcmp(what, "signal") == 0 && count == 3)
		return kill(pid, atoi(args[2])) == 0 ? 0 : errno;
	if (strcmp(what, "trace") == 0)
		return ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? 0 : errno;
	if (strcmp(what, "peek") == 0)
		return peek(pid);
	if (strcmp(what, "limit") == 0)
		return limit(pid);
	return -1;
}

int main(int argc, char **argv)
{
	int outcome = argc < 3 ? -1 : reach(argc - 1, argv + 1);

	if (outcome < 0)
		return 64;
	printf("%d\n", outcome);
	return 0;
}
