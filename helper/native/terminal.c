/*
 * terminal.c: the pseudo-terminal of a run. See terminal.h.
 */
#define _GNU_SOURCE
#include "terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int terminal_open(uid_t user, uint32_t size, int *ours, int *tools)
{
	int unlock = 0;

	*ours = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (*ours < 0 || ioctl(*ours, TIOCSPTLCK, &unlock) != 0)
		return -1;
	*tools = ioctl(*ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*tools < 0)
		return -1;
	terminal_resize(*ours, size);
	/* The mode first: what was given away can't be changed any more. Nobody else may write to it, no group tty either. */
	return fchmod(*tools, 0600) == 0 && fchown(*tools, user, user) == 0 ? 0 : -1;
}

int terminal_take(int tools)
{
	return ioctl(tools, TIOCSCTTY, 0);
}

void terminal_resize(int ours, uint32_t size)
{
	struct winsize window = {.ws_row = (unsigned short)(size >> 16), .ws_col = (unsigned short)(size & 0xffff)};

	ioctl(ours, TIOCSWINSZ, &window);
}

pid_t terminal_foreground(int ours)
{
	pid_t group = 0;

	return ioctl(ours, TIOCGPGRP, &group) == 0 && group > 1 ? group : 0;
}
