/*
 * first-process.c: the first process of a test's own pid namespace.
 *
 *   first-process <program> [argument]…
 *
 * Purpose    Runs a program and reaps whatever comes to it, so that a zombie that a test finds is the fault of what
 *            is tested. Ends when nothing is left, so that whoever waits for it has seen that.
 * Rights     The test's. Refuses to run outside of a namespace of its own.
 * Fails      with 99 when it refuses, otherwise with the program's exit status.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (getpid() != 1 || argc < 2) {
		fprintf(stderr, "first-process: must be the first process of a pid namespace\n");
		return 99;
	}

	pid_t program = fork();

	if (program == 0) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	for (int result = 0;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0)
			return result;
		if (pid == program && WIFEXITED(status))
			result = WEXITSTATUS(status);
		if (pid == program && WIFSIGNALED(status))
			result = 128 + WTERMSIG(status);
	}
}
