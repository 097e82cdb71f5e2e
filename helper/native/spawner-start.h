/*
 * spawner-start.h: the spawner's first steps, in security order.
 *
 * Purpose    After them nothing of what the worker was started with is left but three descriptors.
 * Rights     In: root with exactly the three capabilities. Out: the same.
 * Used by    spawner.c.
 * Fails      with false and one sentence.
 */
#ifndef SPAWNER_START_H
#define SPAWNER_START_H

#include <stdbool.h>
#include <sys/types.h>

struct spawner {
	pid_t worker;
	int worker_end; /* its pidfd: readable when it is gone */
	int lock;
	int listener;
	int children;
	int life_read;  /* inherited by supervisors */
	int life_write; /* the spawner's alone: it closes when the spawner dies, however */
	int null;
};

bool spawner_start(struct spawner *spawner, const char *socket_path, const char *lock_path);

#endif
