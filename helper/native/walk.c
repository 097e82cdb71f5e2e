/*
 * walk.c: everything beneath a process. See walk.h.
 *
 * No recursion: a chain of processes can be as deep as the process limit. A walk stops after VISITS_MAX processes or
 * WALK_LIMIT: one that is longer loses against processes that fork.
 */
#define _GNU_SOURCE
#include "walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"

#define WALK_LIMIT_US 50000
#define VISITS_MAX 256

struct walk {
	void (*visit)(pid_t);
	pid_t self;
	int64_t deadline;
	int visits;
	int count; /* of places still to look at */
	pid_t places[VISITS_MAX];
};

static struct walk walk;

static void found(pid_t pid)
{
	if (pid <= 1 || pid == walk.self)
		return;
	walk.visit(pid);
	walk.visits++;
	if (walk.count < VISITS_MAX)
		walk.places[walk.count++] = pid;
}

static bool is_over(void)
{
	return walk.visits >= VISITS_MAX || now_us() >= walk.deadline;
}

/* One thread's children: decimal numbers, each followed by a blank. A number may lie across two reads. */
static void read_children(int task, const char *tid)
{
	char name[64], text[4096];
	long number = 0;
	ssize_t n;

	snprintf(name, sizeof name, "%.20s/children", tid);

	int file = openat(task, name, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return;
	while (!is_over() && (n = read(file, text, sizeof text)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				number = number * 10 + (text[i] - '0');
				continue;
			}
			found((pid_t)number);
			number = 0;
		}
	}
	close(file);
}

/* Children belong to the thread that made them, so each thread of a process has its own list. */
static void look_at(pid_t pid)
{
	char name[64];
	struct dirent *entry;

	snprintf(name, sizeof name, "/proc/%d/task", pid);

	DIR *task = opendir(name);

	if (task == NULL)
		return;
	while (!is_over() && (entry = readdir(task)) != NULL) {
		if (entry->d_name[0] != '.')
			read_children(dirfd(task), entry->d_name);
	}
	closedir(task);
}

void walk_children(pid_t top, void (*visit)(pid_t))
{
	walk.visit = visit;
	walk.self = getpid();
	walk.deadline = now_us() + WALK_LIMIT_US;
	walk.visits = 0;
	walk.count = 0;
	look_at(top);
}

bool walk_beneath(pid_t top, void (*visit)(pid_t))
{
	walk_children(top, visit);
	while (walk.count > 0 && !is_over())
		look_at(walk.places[--walk.count]);
	return !is_over();
}
