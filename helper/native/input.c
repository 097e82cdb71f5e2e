/*
 * input.c: what the worker sends to a program's standard input. See input.h.
 */
#define _GNU_SOURCE
#include "input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void close_pipe(struct input *input)
{
	if (input->pipe >= 0)
		close(input->pipe);
	input->pipe = -1;
}

bool input_accepts(const struct input *input, size_t length)
{
	return !input->over && length <= RELAY_MAX && length <= STDIN_WINDOW - input->length;
}

uint8_t *input_place(struct input *input)
{
	/* All that is held moves to the front, so that what was accepted has its room in one piece. */
	if (input->start > 0) {
		memmove(input->bytes, input->bytes + input->start, input->length);
		input->start = 0;
	}
	return input->bytes + input->length;
}

void input_add(struct input *input, size_t length)
{
	input->length += length;
}

void input_end(struct input *input)
{
	input->over = true;
	if (input->length == 0)
		close_pipe(input);
}

bool input_waits(const struct input *input)
{
	return input->pipe >= 0 && input->length > 0;
}

size_t input_write(struct input *input)
{
	size_t taken = input->length;

	if (input->pipe >= 0 && input->length > 0) {
		ssize_t n = write(input->pipe, input->bytes + input->start, input->length);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n >= 0)
			taken = (size_t)n;
		else
			close_pipe(input); /* nobody reads it any more */
	}
	input->start += taken;
	input->length -= taken;
	if (input->length == 0) {
		input->start = 0;
		if (input->over)
			close_pipe(input);
	}
	return taken;
}
