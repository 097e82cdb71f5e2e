/*
 * signals.c: dispositions and masks. See signals.h.
 */
#define _GNU_SOURCE
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KERNEL_SIGNALS 64
#define KERNEL_SET (KERNEL_SIGNALS / 8)

int signals_reset_all(void)
{
	/* All zero is SIG_DFL, no flags and an empty mask, in the kernel's layout of every architecture. */
	static const char standard[64];

	for (int signal = 1; signal <= KERNEL_SIGNALS; signal++) {
		if (signal == SIGKILL || signal == SIGSTOP)
			continue;
		if (syscall(SYS_rt_sigaction, signal, standard, NULL, KERNEL_SET) != 0)
			return -1;
	}
	return 0;
}

static int set_mask(int every_byte)
{
	unsigned char set[KERNEL_SET];

	memset(set, every_byte, sizeof set);
	return (int)syscall(SYS_rt_sigprocmask, SIG_SETMASK, set, NULL, sizeof set);
}

int signals_block_all(void)
{
	return set_mask(0xff);
}

int signals_unblock_all(void)
{
	return set_mask(0);
}

int signals_watch_children(void)
{
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	return signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

void signals_drain(int watch)
{
	struct signalfd_siginfo seen;

	/* SIGCHLD does not queue: one read empties it. */
	if (read(watch, &seen, sizeof seen) < 0)
		return;
}
