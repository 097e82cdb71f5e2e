/*
 * supervisor.c: one connection. See supervisor.h.
 */
#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "end-uid.h"
#include "message.h"
#include "plan.h"
#include "processes.h"
#include "run.h"
#include "wire.h"

#define FIRST_MESSAGE_LIMIT_US 5000000
#define ANSWER_LIMIT_US 5000000

static _Noreturn void refuse(int connection, uint32_t step, int error)
{
	message_send_failed(connection, step, error);
	message_finish(connection);
	_exit(0);
}

static bool become_supervisor(void)
{
	uid_t own = KILLER_UID_FIRST + (uid_t)getpid();
	uid_t ruid, euid, suid;

	if (setresuid(own, 0, 0) != 0 || getresuid(&ruid, &euid, &suid) != 0)
		return false;
	if (ruid != own || euid != 0 || suid != 0) {
		errno = EPERM;
		return false;
	}
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

static _Noreturn void serve_end(int connection, int life, const uint8_t *body)
{
	uid_t user = get_u32(body);

	if (!is_user(user))
		refuse(connection, STEP_PLAN, EPROTO);
	if (end_uid(user, connection, life))
		message_send(connection, MSG_ENDED, NULL, 0, now_us() + ANSWER_LIMIT_US);
	message_finish(connection);
	_exit(0);
}

_Noreturn void supervisor_main(int connection, int life)
{
	int64_t deadline = now_us() + FIRST_MESSAGE_LIMIT_US;
	uint8_t header[MSG_HEADER];
	struct plan plan;

	if (!become_supervisor())
		refuse(connection, STEP_FORK, errno);

	int error = message_read(connection, life, header, sizeof header, deadline);

	if (error == ECONNRESET || error == ECANCELED)
		_exit(0);
	if (error != 0)
		refuse(connection, STEP_PLAN, error);

	uint32_t kind = get_u32(header), length = get_u32(header + 4);
	bool starts = kind == MSG_RUN || kind == MSG_BESIDE || kind == MSG_HELPER;
	bool sound = (starts && length >= RUN_FIXED && length <= PLAN_MAX) || (kind == MSG_END && length == 4);

	if (!sound)
		refuse(connection, STEP_PLAN, EPROTO);

	uint8_t *body = malloc(length);

	if (body == NULL)
		refuse(connection, STEP_PLAN, ENOMEM);
	error = message_read(connection, life, body, length, deadline);
	if (error == ECONNRESET || error == ECANCELED)
		_exit(0);
	if (error != 0)
		refuse(connection, STEP_PLAN, error);

	if (kind == MSG_END)
		serve_end(connection, life, body);
	error = plan_parse(body, length, kind == MSG_HELPER, &plan);
	if (error != 0)
		refuse(connection, STEP_PLAN, error);
	plan.beside = kind != MSG_RUN;
	if (plan.beside && plan.stdio != STDIO_EMPTY)
		refuse(connection, STEP_PLAN, EPROTO);
	run_serve(connection, life, plan);
}
