/*
 * peercred.c: who is at the other end of a socket. See peercred.h.
 */
#define _GNU_SOURCE
#include "peercred.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "say.h"

#define CONNECTION 3

int peercred_main(void)
{
	struct ucred peer;
	struct sockaddr_un other;
	socklen_t length = sizeof peer, other_length = sizeof other;
	char line[32];

	say_as("peercred");
	/* An unconnected or another kind of socket would be answered with an id that is nobody's. The pid is 0 when
	 * the peer lives in another pid namespace; only the uid counts. */
	if (getpeername(CONNECTION, (struct sockaddr *)&other, &other_length) != 0 || other.sun_family != AF_UNIX ||
	    getsockopt(CONNECTION, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
		say("descriptor 3 is not a connected Unix socket");
		return 1;
	}

	int n = snprintf(line, sizeof line, "%u\n", peer.uid);

	if (write(STDOUT_FILENO, line, (size_t)n) != n) {
		say_errno("standard output can't be written", errno);
		return 1;
	}
	return 0;
}
