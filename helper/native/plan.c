/*
 * plan.c: the launch plan, checked. See plan.h, and wire.h for the format.
 */
#include "plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "wire.h"

/* The strings that are left; `at` never passes `end`. */
struct strings {
	char *at;
	char *end;
};

/* The next string, or NULL when no NUL is left. */
static char *next(struct strings *rest)
{
	char *start = rest->at;
	char *nul = memchr(start, 0, (size_t)(rest->end - start));

	if (nul == NULL)
		return NULL;
	rest->at = nul + 1;
	return start;
}

static bool is_name_start(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* KEY=VALUE with a KEY that every shell can name; an entry without one could hide from what filters by name. */
static bool is_env_entry(const char *entry)
{
	if (!is_name_start(*entry))
		return false;
	while (is_name_start(*entry) || (*entry >= '0' && *entry <= '9'))
		entry++;
	return *entry == '=';
}

/* `count` strings as a NULL-ended vector, each one checked; NULL with errno otherwise. */
static char **vector(struct strings *rest, uint32_t count, bool (*check)(const char *))
{
	char **list = calloc((size_t)count + 1, sizeof *list);

	if (list == NULL)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		list[i] = next(rest);
		if (list[i] == NULL || (check != NULL && !check(list[i]))) {
			free(list);
			errno = EPROTO;
			return NULL;
		}
	}
	return list;
}

/* Whom it is for: a user; or, for a helper, nobody yet, without what can only be had together with a user. */
static bool user_is_sound(const struct plan *plan)
{
	if (plan->helper)
		return plan->uid == 0 && plan->time_limit_ms == 0 && plan->max_address == 0 && plan->grace_ms == 0 &&
		       plan->stdio == STDIO_EMPTY;
	return plan->uid >= USER_UID_FIRST && plan->uid <= USER_UID_LAST;
}

bool is_terminal_size(uint32_t size)
{
	return size >> 16 != 0 && (size & 0xffff) != 0;
}

static bool stdio_is_sound(const struct plan *plan)
{
	if (plan->stdio == STDIO_TERMINAL)
		return is_terminal_size(plan->terminal_size);
	return plan->stdio <= STDIO_PIPES && plan->terminal_size == 0;
}

static bool numbers_are_sound(const struct plan *plan, uint32_t args, uint32_t env)
{
	return user_is_sound(plan) && stdio_is_sound(plan) && plan->time_limit_ms <= LIMIT_TIME_MS_MAX &&
	       plan->grace_ms <= LIMIT_GRACE_MS_MAX && plan->output_cap <= LIMIT_NUMBER_MAX && plan->max_processes <= LIMIT_NUMBER_MAX &&
	       plan->max_file_size <= LIMIT_NUMBER_MAX && plan->max_address <= LIMIT_NUMBER_MAX &&
	       args >= 1 && args <= LIMIT_ARGS_MAX && env <= LIMIT_ENV_MAX;
}

static bool paths_are_sound(const struct plan *plan)
{
	if (plan->program[0] != '/')
		return false;
	if (plan->helper)
		return plan->space[0] == 0 && plan->directory[0] == 0;
	return plan->space[0] == '/' && plan->directory[0] != '/';
}

int plan_parse(uint8_t *body, size_t length, bool helper, struct plan *plan)
{
	struct plan read = {.helper = helper};

	if (length < RUN_FIXED || length > PLAN_MAX || get_u32(body) != WIRE_VERSION)
		return EPROTO;
	read.uid = get_u32(body + 4);
	read.time_limit_ms = get_u64(body + 8);
	read.output_cap = get_u64(body + 16);
	read.max_processes = get_u64(body + 24);
	read.max_file_size = get_u64(body + 32);
	read.max_address = get_u64(body + 40);
	read.grace_ms = get_u32(body + 48);
	read.stdio = get_u32(body + 64);
	read.terminal_size = get_u32(body + 68);

	uint32_t args = get_u32(body + 52), env = get_u32(body + 56), size = get_u32(body + 60);

	if (!numbers_are_sound(&read, args, env) || size != length - RUN_FIXED)
		return EPROTO;

	struct strings rest = {.at = (char *)body + RUN_FIXED, .end = (char *)body + length};

	read.program = next(&rest);
	read.space = read.program == NULL ? NULL : next(&rest);
	read.directory = read.space == NULL ? NULL : next(&rest);
	if (read.directory == NULL || !paths_are_sound(&read))
		return EPROTO;

	read.args = vector(&rest, args, NULL);
	if (read.args == NULL)
		return errno;
	read.env = vector(&rest, env, is_env_entry);
	if (read.env == NULL || rest.at != rest.end) {
		int error = read.env == NULL ? errno : EPROTO;

		plan_free(&read);
		return error;
	}
	*plan = read;
	return 0;
}

void plan_free(struct plan *plan)
{
	free(plan->args);
	free(plan->env);
	plan->args = NULL;
	plan->env = NULL;
}
