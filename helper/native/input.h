/*
 * input.h: what the worker sends to a program's standard input.
 *
 * Purpose    Holds what the program has not read yet, at most STDIN_WINDOW bytes, and writes it to the program's pipe
 *            as it is read. The supervisor never waits for the program, and goes on reading the worker's messages.
 * Rights     None.
 * Used by    request.c, run.c.
 * Fails      by throwing away: a program that has closed its standard input gets nothing, and that is no error.
 */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct input {
	int pipe;  /* -1: the program has none, or none any more */
	bool over; /* the worker has said that this is all */
	size_t start, length; /* what is not written yet */
	uint8_t bytes[STDIN_WINDOW];
};

/* Whether a message of this length is within the window. */
bool input_accepts(const struct input *input, size_t length);
/* Where the next bytes belong; as many as have been accepted fit there. */
uint8_t *input_place(struct input *input);
void input_add(struct input *input, size_t length);
/* No more will come. */
void input_end(struct input *input);
/* Whether the pipe should be polled. */
bool input_waits(const struct input *input);
/* Writes what the pipe takes now; returns how many bytes are off our hands. */
size_t input_write(struct input *input);

#endif
