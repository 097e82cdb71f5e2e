/*
 * processes.c: who runs, as /proc says. See processes.h.
 */
#define _GNU_SOURCE
#include "processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire.h"

bool is_user(uid_t uid)
{
	return uid >= USER_UID_FIRST && uid <= USER_UID_LAST;
}

bool is_killer(uid_t uid)
{
	return uid >= KILLER_UID_FIRST && uid != (uid_t)-1;
}

uid_t process_user(const struct process *process)
{
	const uid_t ids[] = {process->real, process->effective, process->saved, process->file};

	if (is_killer(process->real))
		return 0;
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		if (is_user(ids[i]))
			return ids[i];
	}
	return 0;
}

/* The name in the first line is the process's own choice; the kernel escapes line ends in it, so that a line that
 * begins with a field's name is that field. */
static const char *field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at == NULL ? NULL : at + strlen(name);
}

bool process_read(pid_t pid, struct process *process)
{
	char name[64], status[4096];

	snprintf(name, sizeof name, "/proc/%d/status", pid);

	int file = open(name, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return false;

	ssize_t n = read(file, status, sizeof status - 1);

	close(file);
	if (n <= 0)
		return false;
	status[n] = 0;

	const char *state = field(status, "\nState:\t"), *parent = field(status, "\nPPid:\t");
	const char *ids = field(status, "\nUid:\t"), *threads = field(status, "\nThreads:\t");
	const char *tracer = field(status, "\nTracerPid:\t");
	int ppid, count;

	if (state == NULL || parent == NULL || ids == NULL || threads == NULL || tracer == NULL)
		return false;
	if (sscanf(threads, "%d", &count) != 1 || sscanf(parent, "%d", &ppid) != 1 ||
	    sscanf(ids, "%u %u %u %u", &process->real, &process->effective, &process->saved, &process->file) != 4)
		return false;
	process->name[0] = 0;
	sscanf(status, "Name:\t%15s", process->name);
	process->pid = pid;
	process->parent = ppid;
	process->traced = *tracer != '0';
	process->zombie = (*state == 'Z' || *state == 'X') && count <= 1;
	return true;
}

int processes_each(bool (*visit)(const struct process *process, void *context), void *context)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool go_on = true;

	if (proc == NULL)
		return -1;
	errno = 0;
	while (go_on && (entry = readdir(proc)) != NULL) {
		struct process process;
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && *end == 0 && process_read((pid_t)pid, &process))
			go_on = visit(&process, context);
		errno = 0;
	}

	int error = errno;

	closedir(proc);
	errno = error;
	return error == 0 ? 0 : -1;
}
