/*
 * tell.h: asking a tree of processes to end.
 *
 * Purpose    SIGTERM to everything beneath a process, each once. What is stopped goes on, and takes it.
 * Rights     The caller's: a killer's, (K, U, 0).
 * Used by    killer.c.
 * Fails      by telling less: it is bounded in time and in what it remembers. Whoever waits ends the rest.
 */
#ifndef TELL_H
#define TELL_H

#include <stdbool.h>
#include <sys/types.h>

/* hang_up: SIGHUP as well, as when a terminal is closed. */
void tell_beneath(pid_t top, bool hang_up);

#endif
