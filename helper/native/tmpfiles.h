/*
 * tmpfiles.h: what a run left in the folders that everybody may write to.
 *
 * Purpose    Removes a user's files from /tmp, /dev/shm and /dev/mqueue after a run, since they are shared memory
 *            that nobody's quota counts. Bounded in entries, depth and time: it tidies, it is no promise.
 * Rights     The supervisor only lists. What removes is a child that has dropped to the user, so that a link or a
 *            rename can lead it nowhere that the user could not go.
 * Used by    run.c, after the run's last process is gone.
 * Fails      by leaving something there.
 */
#ifndef TMPFILES_H
#define TMPFILES_H

#include <sys/types.h>

void tmpfiles_remove(uid_t user);

#endif
