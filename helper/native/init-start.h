/*
 * init-start.h: init's first steps.
 *
 * Purpose    Known signals, descriptors and umask, whatever it was started with, and to be the one to whom all that
 *            loses its parent comes.
 * Rights     None needed, none changed.
 * Used by    init.c.
 * Fails      with -1 and errno; init then does not start.
 */
#ifndef INIT_START_H
#define INIT_START_H

/* A descriptor that tells of SIGCHLD, SIGTERM and SIGINT; every other signal is blocked. */
int init_prepare(void);

#endif
