/*
 * relay.h: the tool's output on its way to the worker.
 *
 * Purpose    Reads the tool's two pipes, frames what it reads, and sends the frames without ever waiting.
 *            Memory is bounded by one frame per stream: while a frame is unsent its pipe is not read, so a
 *            slow worker slows the tool down; what is over the cap is read and dropped, so that a worker that
 *            has enough does not.
 * Rights     None.
 * Used by    run.c.
 * Fails      by dropping everything once nobody listens any more.
 */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire.h"

struct stream {
	int pipe; /* -1 after its end of file */
	uint32_t kind;
	uint64_t cap_left;
	uint64_t rest; /* after the run's end: bytes that it left in the pipe */
	bool cut;
	bool tells_end;  /* the worker wants to know when nobody can write any more */
	bool end_untold;
	size_t have;
	uint8_t frame[MSG_HEADER + RELAY_MAX];
};

struct relay {
	int connection;
	int null;    /* where dropped output goes, without being copied */
	bool closed; /* nobody listens */
	bool settled; /* the run is over: read only the rest */
	int64_t linger_us;
	int64_t linger_until; /* 0 = nothing waits */
	struct stream stream[2];
	bool started; /* the worker has not been told yet */
	uint8_t started_frame[MSG_HEADER];
	uint32_t taken; /* bytes of input that the worker has not been told of */
	uint8_t taken_frame[MSG_HEADER + 4];
	size_t control_length;
	uint8_t control[MSG_HEADER + EXIT_BODY];
	int unsent_count;
	struct iovec unsent[5];
};

/* A pipe of -1 is a stream that there isn't. Output that does not fill half a frame waits for more, and for the tool's
 * exit, for as long as it may linger. `tells_end`: the end of each stream is told as well. */
void relay_open(struct relay *relay, int connection, const int pipes[2], uint64_t cap, int64_t linger_us, bool tells_end);
/* Whether a stream's pipe should be polled. */
bool relay_wants(const struct relay *relay, const struct stream *stream);
void relay_read(struct relay *relay, struct stream *stream);
/* The tool was executed: told before all else. */
void relay_started(struct relay *relay);
/* So many more bytes of input were taken. The worker is told once it matters, or with what it is told anyway. */
void relay_taken(struct relay *relay, size_t bytes);
/* A last message, sent after all output before it. There is one at a time. */
void relay_control(struct relay *relay, uint32_t kind, const uint8_t body[EXIT_BODY]);
/* Sends what is ready, or all there is with `now`. */
void relay_send(struct relay *relay, bool now);
bool relay_sending(const struct relay *relay);
/* Nobody listens any more: output is read and dropped from here on. */
void relay_close(struct relay *relay);
/* The run is gone. What it wrote is in the pipes now; a descriptor that it passed to somebody else may add more
 * for ever, so exactly these bytes are still read. A terminal does not know how many they are before they are read; it
 * holds less than a frame, so of it that much is read at most. */
void relay_settle(struct relay *relay, bool terminal);
bool relay_done(const struct relay *relay);

#endif
