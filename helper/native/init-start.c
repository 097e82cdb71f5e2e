/*
 * init-start.c: init's first steps. See init-start.h.
 */
#define _GNU_SOURCE
#include "init-start.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "signals.h"

int init_prepare(void)
{
	sigset_t watched;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (signals_block_all() != 0 || signals_reset_all() != 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    fcntl(STDOUT_FILENO, F_GETFD) < 0 || fcntl(STDERR_FILENO, F_GETFD) < 0 || close_range(3, ~0U, 0) != 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return -1;
	umask(077);
	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGTERM);
	sigaddset(&watched, SIGINT);
	return signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
}
