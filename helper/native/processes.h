/*
 * processes.h: who runs, as /proc says.
 *
 * Purpose    Find processes by uid where there is no parent left to ask: of a uid (end-uid.c), of a dead supervisor
 *            (spawner.c), of an earlier life of the service (leftovers.c).
 * Rights     None: /proc/<pid>/status is readable by all.
 * Used by    end-uid.c, spawner.c, leftovers.c.
 * Fails      with -1 when /proc can't be listed: nobody may then claim that a uid is empty.
 */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <stdbool.h>
#include <sys/types.h>

struct process {
	pid_t pid;
	pid_t parent;
	uid_t real, effective, saved, file;
	char name[16]; /* the process's own choice */
	bool zombie; /* and no thread of it lives on */
	bool traced;
};

bool is_user(uid_t uid);   /* in the users' range */
bool is_killer(uid_t uid); /* a real uid that only supervisors and killers have */
/* The user that a process belongs to by any of its ids, or 0. A killer at work belongs to nobody. */
uid_t process_user(const struct process *process);

/* False when there is no such process any more. */
bool process_read(pid_t pid, struct process *process);
/* Calls `visit` for each process; stops when it returns false. */
int processes_each(bool (*visit)(const struct process *process, void *context), void *context);

#endif
