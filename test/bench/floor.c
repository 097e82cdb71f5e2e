/*
 * floor.c: the least that a run can cost: fork, exec, both outputs read to their end, wait.
 *
 *   floor COUNT PROGRAM [ARGUMENT...]    prints what each of COUNT runs took, microseconds, one per line
 *
 * The output is read in pieces of 64 KiB and discarded. A run that does not exit with 0 ends it all with status 1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char piece[65536];

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void read_to_the_end(int out, int err)
{
	struct pollfd waits[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};

	while (waits[0].fd >= 0 || waits[1].fd >= 0) {
		if (poll(waits, 2, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++) {
			if (waits[i].revents == 0 || read(waits[i].fd, piece, sizeof piece) > 0)
				continue;
			close(waits[i].fd);
			waits[i].fd = -1;
		}
	}
}

static int run(char **command)
{
	int out[2], err[2], status = -1;

	if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
		return -1;

	pid_t pid = fork();

	if (pid == 0) {
		int in = open("/dev/null", O_RDONLY);

		if (dup2(in, 0) == 0 && dup2(out[1], 1) == 1 && dup2(err[1], 2) == 2)
			execv(command[0], command);
		_exit(127);
	}
	close(out[1]);
	close(err[1]);
	read_to_the_end(out[0], err[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[1]) : 0;

	for (int i = 0; i < count; i++) {
		int64_t start = now_us();

		if (run(argv + 2) != 0)
			return 1;
		printf("%lld\n", (long long)(now_us() - start));
	}
	return count > 0 ? 0 : 64;
}
