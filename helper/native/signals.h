/*
 * signals.h: who may be told what by signal.
 *
 * Purpose    The spawner, its supervisors and init end by their sockets and by init's own TERM and INT; every other
 *            signal that a terminal, a group kill or an operator sends stays blocked. A tool starts with none blocked
 *            and every disposition standard, whatever the service was started with.
 * Rights     None.
 * Used by    spawner.c, supervisor.c, launch-child.c, init.c.
 * Fails      with -1 and errno.
 */
#ifndef SIGNALS_H
#define SIGNALS_H

/* By the bare system calls: the C library keeps 32 and 33 to itself and would leave them as they were. */
int signals_reset_all(void);
int signals_block_all(void);
int signals_unblock_all(void);
/* A descriptor that becomes readable when SIGCHLD is pending, non-blocking. */
int signals_watch_children(void);
void signals_drain(int watch);

#endif
