/*
 * deep COUNT MODE: makes COUNT folders in each other, in the current one, each with a long name and a file in it, and
 * gives each the mode (octal) once it is left. No path to the last of them is short enough for any system call.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char name[201];
	if (argc != 3)
		return 64;
	memset(name, 'd', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	mode_t mode = (mode_t)strtol(argv[2], NULL, 8);
	int folder = -1;
	for (long left = strtol(argv[1], NULL, 10); left > 0; left--) {
		int file = open("f", O_CREAT | O_WRONLY, 0600);
		if (file < 0 || close(file) != 0 || mkdir(name, 0700) != 0)
			return 1;
		int next = open(name, O_RDONLY | O_DIRECTORY);
		if (next < 0 || fchdir(next) != 0)
			return 1;
		/* The folder that it was started in keeps its mode. */
		if (folder >= 0 && (fchmod(folder, mode) != 0 || close(folder) != 0))
			return 1;
		folder = next;
	}
	return 0;
}
