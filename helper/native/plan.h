/*
 * plan.h: the launch plan, checked.
 *
 * Purpose    Turns the body of MSG_RUN or MSG_HELPER into a plan, or refuses it. This is the parser on the trust
 *            boundary: pure, no system call but memory, fuzzed by test/fuzz/plan-fuzz.c.
 * Rights     None.
 * Used by    supervisor.c.
 * Fails      with EPROTO for anything that is not exactly a plan, ENOMEM without memory. Nothing is half set.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct plan {
	bool helper; /* starts undropped */
	bool beside; /* one process, whose user may have a run that must not notice its end; helpers are */
	uid_t uid;   /* 0 = a helper whose user has not been named yet */
	uint64_t time_limit_ms; /* 0 = none */
	uint64_t output_cap;    /* bytes, each stream */
	uint64_t max_processes; /* the three limits: 0 = not set */
	uint64_t max_file_size;
	uint64_t max_address;
	uint32_t grace_ms;
	uint32_t stdio;         /* STDIO_* */
	uint32_t terminal_size; /* as MSG_RESIZE */
	char *program;   /* absolute */
	char *space;     /* absolute */
	char *directory; /* relative to home, may be empty */
	char **args;     /* ended by NULL, as execve wants it; the strings lie in the body */
	char **env;
};

/* The body must outlive the plan. */
int plan_parse(uint8_t *body, size_t length, bool helper, struct plan *plan);
void plan_free(struct plan *plan);
/* Rows and columns, neither of them 0. */
bool is_terminal_size(uint32_t size);

#endif
