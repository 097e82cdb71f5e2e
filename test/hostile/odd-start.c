/*
 * odd-start.c: starts a program the way nobody should.
 *
 *   odd-start <program> [argument]…
 *
 * Purpose    Ignores every signal, blocks every signal, leaves descriptors open, sets a wide umask and an
 *            inheritable capability, and then becomes the program: what the program hands on of this is its fault.
 * Rights     The test's.
 * Fails      with 98.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	unsigned long mask;
};

int main(int argc, char **argv)
{
	struct kernel_action ignore = {.handler = (void *)1};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
	struct __user_cap_data_struct data[2];
	unsigned char all[8];
	int odd = 0;

	if (argc < 2 || syscall(SYS_capget, &header, data) != 0)
		return 98;
	data[0].inheritable = data[0].permitted;
	odd |= syscall(SYS_capset, &header, data) != 0;
	for (int signal = 1; signal <= 64; signal++)
		syscall(SYS_rt_sigaction, signal, &ignore, NULL, 8);
	memset(all, 0xff, sizeof all);
	odd |= syscall(SYS_rt_sigprocmask, 0, all, NULL, sizeof all) != 0;
	umask(0);
	for (int i = 0; i < 8; i++)
		odd |= open("/", O_RDONLY) < 0;
	if (odd)
		return 98;
	execvp(argv[1], argv + 1);
	return 98;
}
