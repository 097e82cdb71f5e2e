/*
 * entrance.h: the spawner's lock and its socket.
 *
 * Purpose    One spawner per state dir: the lock's open file description is inherited by every supervisor and by no
 *            tool, so that it is free only when every run of an earlier life is gone. The socket lies in a folder
 *            that only root can enter.
 * Rights     Root without CAP_DAC_OVERRIDE: the folder must be root's.
 * Used by    spawner.c.
 * Fails      with -1, after one sentence on standard error.
 */
#ifndef ENTRANCE_H
#define ENTRANCE_H

/* Waits up to LOCK_LIMIT; gives up at once when the lifeline (descriptor 0) ends. */
int entrance_lock(const char *path);
/* A listening, non-blocking socket of mode 0600. */
int entrance_listen(const char *path);

#endif
