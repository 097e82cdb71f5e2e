/*
 * lease FILE: takes a lease on a file and never gives it up, so that whoever opens it waits (fcntl(2), F_SETLEASE).
 * Says "leased" once it holds it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2)
		return 64;
	signal(SIGIO, SIG_IGN);
	int file = open(argv[1], O_RDWR);
	if (file < 0 || fcntl(file, F_SETLEASE, F_WRLCK) != 0)
		return 1;
	if (write(1, "leased\n", 7) != 7)
		return 1;
	for (;;)
		pause();
}
