/*
 * swap A B: exchanges two names as fast as it can, until it is killed. Says "swapping" once it has begun.
 * What a user does who hopes that a program looks at one and opens the other (renameat2(2), RENAME_EXCHANGE).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 3)
		return 64;
	int said = 0;
	for (;;) {
		if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) != 0)
			continue;
		if (!said && write(1, "swapping\n", 9) == 9)
			said = 1;
	}
}
