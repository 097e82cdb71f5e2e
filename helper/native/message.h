/*
 * message.h: whole messages over a connection, each wait with a deadline.
 *
 * Purpose    Integers of the wire, the first message in, short answers out, and the way to end a connection so
 *            that the last answer arrives.
 * Rights     None. The descriptors are non-blocking.
 * Used by    supervisor.c, run.c, end-uid.c, relay.c.
 * Fails      with an errno as the result; ECONNRESET stands for the peer's end of file.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stddef.h>
#include <stdint.h>

void put_u32(uint8_t *at, uint32_t value);
void put_u64(uint8_t *at, uint64_t value);
uint32_t get_u32(const uint8_t *at);
uint64_t get_u64(const uint8_t *at);

/* Reads exactly `length` bytes. `life` is the spawner's life: its end of file is ECANCELED. */
int message_read(int connection, int life, void *buffer, size_t length, int64_t deadline_us);
int message_send(int connection, uint32_t kind, const uint8_t *body, size_t length, int64_t deadline_us);
int message_send_failed(int connection, uint32_t step, int error);
/* Shuts the sending half and reads to the peer's end, at most FINISH_LIMIT. */
void message_finish(int connection);

#endif
