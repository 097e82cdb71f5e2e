/*
 * request.h: what the worker says after its first message.
 *
 * Purpose    Reads MSG_STOP, MSG_USER, MSG_STDIN, MSG_RESIZE and MSG_SIGNAL, whole or in pieces, without ever waiting.
 * Rights     None of its own. It sets whose user a helper is; what follows from that is ending.c's, and signals are killer.c's.
 * Used by    run.c.
 * Fails      closed: the connection's end, or anything that wire.h does not allow here, is the end of the run.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct run;

struct request {
	size_t have;
	uint8_t bytes[MSG_HEADER + 4];
	size_t input_left; /* of a MSG_STDIN that has begun */
};

/* Takes in what has come, once. */
void request_read(struct run *run);

#endif
