/*
 * plan-fuzz.c: the plan parser against random changes of good plans.
 *
 *   plan-fuzz <iterations> [seed]
 *
 * Purpose    Built with the address and undefined-behaviour sanitizers. Each input lies in an allocation of exactly
 *            its size, so that a read beyond it is found. What the parser accepts is held against what wire.h says.
 *            The same seed gives the same inputs.
 * Rights     None.
 * Fails      with a sanitizer's report, or with 1 when a plan was accepted that breaks a rule, or when the changes
 *            were so wild that hardly any plan was accepted, and so nothing was tested.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "plan.h"
#include "wire.h"

static uint64_t state;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static size_t below(size_t n)
{
	return n == 0 ? 0 : (size_t)(next_random() % n);
}

static size_t add(uint8_t *body, size_t at, const char *text)
{
	memcpy(body + at, text, strlen(text) + 1);
	return at + strlen(text) + 1;
}

static size_t good_plan(uint8_t *body, bool helper)
{
	static const char *const words[] = {"", "a", "repos/x", "--flag", "\xc3\xa9", "PATH=/bin", "_=", "A1=b=c"};
	uint32_t args = (uint32_t)below(6) + 1, env = (uint32_t)below(4);
	size_t at = RUN_FIXED;

	memset(body, 0, RUN_FIXED);
	at = add(body, at, "/bin/true");
	at = add(body, at, helper ? "" : "/work/u20000");
	at = add(body, at, helper ? "" : words[below(3)]);
	for (uint32_t i = 0; i < args; i++)
		at = add(body, at, words[below(8)]);
	for (uint32_t i = 0; i < env; i++)
		at = add(body, at, words[5 + below(3)]);
	put_u32(body, WIRE_VERSION);
	put_u64(body + 16, below(1 << 20));
	if (!helper) {
		put_u32(body + 4, USER_UID_FIRST + (uint32_t)below(USER_UID_LAST - USER_UID_FIRST + 1));
		put_u64(body + 8, below(LIMIT_TIME_MS_MAX));
		put_u32(body + 48, (uint32_t)below(LIMIT_GRACE_MS_MAX));
		put_u32(body + 64, (uint32_t)below(STDIO_TERMINAL + 1));
		if (get_u32(body + 64) == STDIO_TERMINAL)
			put_u32(body + 68, 24 << 16 | 80);
	}
	put_u32(body + 52, args);
	put_u32(body + 56, env);
	put_u32(body + 60, (uint32_t)(at - RUN_FIXED));
	return at;
}

static size_t change(uint8_t *body, size_t length, size_t room)
{
	static const uint32_t edges[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, LIMIT_ARGS_MAX, LIMIT_ENV_MAX, USER_UID_LAST};
	size_t at = below(length), other = below(length), n;

	switch (below(7)) {
	case 0:
		body[at] ^= (uint8_t)(1 << below(8));
		break;
	case 1:
		body[at] = (uint8_t)next_random();
		break;
	case 2:
		body[at] = 0;
		break;
	case 3: /* a number of the fixed part */
		if (length >= RUN_FIXED)
			put_u32(body + 4 * below(RUN_FIXED / 4), edges[below(8)]);
		break;
	case 4: /* cut */
		length = at;
		break;
	case 5: /* longer, and the length with it */
		n = below(32);
		if (length >= RUN_FIXED && length + n <= room) {
			for (size_t i = 0; i < n; i++)
				body[length + i] = (uint8_t)next_random();
			length += n;
			put_u32(body + 60, (uint32_t)(length - RUN_FIXED));
		}
		break;
	default: /* a piece elsewhere */
		n = below(length - (at > other ? at : other));
		memmove(body + at, body + other, n);
	}
	return length;
}

static bool inside(const char *text, const uint8_t *body, size_t length)
{
	return (const uint8_t *)text >= body + RUN_FIXED && (const uint8_t *)text + strlen(text) < body + length;
}

/* A helper's plan names no user, and nothing that belongs to one. */
static bool is_for_whom_it_should(const struct plan *plan)
{
	if (plan->helper)
		return plan->uid == 0 && plan->time_limit_ms == 0 && plan->max_address == 0 && plan->grace_ms == 0 &&
		       plan->stdio == STDIO_EMPTY && plan->space[0] == 0 && plan->directory[0] == 0;
	return plan->uid >= USER_UID_FIRST && plan->uid <= USER_UID_LAST && plan->space[0] == '/';
}

/* A size goes with a terminal, and only with one. */
static bool has_sound_streams(const struct plan *plan)
{
	uint32_t rows = plan->terminal_size >> 16, columns = plan->terminal_size & 0xffff;

	if (plan->stdio == STDIO_TERMINAL)
		return rows > 0 && columns > 0;
	return (plan->stdio == STDIO_EMPTY || plan->stdio == STDIO_PIPES) && plan->terminal_size == 0;
}

static bool keeps_the_rules(const struct plan *plan, const uint8_t *body, size_t length)
{
	size_t args = 0, env = 0;

	for (; plan->args[args] != NULL; args++) {
		if (!inside(plan->args[args], body, length))
			return false;
	}
	for (; plan->env[env] != NULL; env++) {
		if (!inside(plan->env[env], body, length) || strchr(plan->env[env], '=') == NULL || plan->env[env][0] == '=')
			return false;
	}
	return is_for_whom_it_should(plan) && has_sound_streams(plan) && plan->time_limit_ms <= LIMIT_TIME_MS_MAX &&
	       plan->grace_ms <= LIMIT_GRACE_MS_MAX && plan->output_cap <= LIMIT_NUMBER_MAX &&
	       plan->max_processes <= LIMIT_NUMBER_MAX && plan->max_file_size <= LIMIT_NUMBER_MAX &&
	       plan->max_address <= LIMIT_NUMBER_MAX && args == get_u32(body + 52) && env == get_u32(body + 56) &&
	       args >= 1 && inside(plan->program, body, length) && inside(plan->space, body, length) &&
	       inside(plan->directory, body, length) && plan->program[0] == '/' &&
	       plan->directory[0] != '/';
}

int main(int argc, char **argv)
{
	long iterations = argc > 1 ? atol(argv[1]) : 100000, accepted = 0;
	uint8_t draft[4096];

	state = argc > 2 ? (uint64_t)atoll(argv[2]) : 20000;
	state = state * 0x9e3779b97f4a7c15 | 1;
	for (long i = 0; i < iterations; i++) {
		bool helper = below(2) == 1;
		size_t length = good_plan(draft, helper);
		struct plan plan;

		for (size_t changes = below(4); changes > 0 && length > 0; changes--)
			length = change(draft, length, sizeof draft);

		uint8_t *body = malloc(length + (length == 0));

		if (body == NULL)
			return 1;
		memcpy(body, draft, length);

		int error = plan_parse(body, length, helper, &plan);

		if (error == 0) {
			accepted++;
			if (!keeps_the_rules(&plan, body, length)) {
				fprintf(stderr, "plan-fuzz: a plan that breaks a rule was accepted, iteration %ld\n", i);
				return 1;
			}
			plan_free(&plan);
		} else if (error != EPROTO) {
			fprintf(stderr, "plan-fuzz: an unknown refusal, iteration %ld\n", i);
			return 1;
		}
		free(body);
	}
	printf("%ld plans, %ld accepted\n", iterations, accepted);
	return accepted * 10 > iterations && accepted < iterations ? 0 : 1;
}
