/*
 * clock.h: time since boot, which no one can set back.
 *
 * Rights     None.
 * Used by    every file with a deadline.
 * Fails      never: CLOCK_MONOTONIC always exists on Linux.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* What is left until a deadline, for ppoll; never negative. */
static inline struct timespec time_left(int64_t deadline_us)
{
	int64_t left = deadline_us - now_us();
	struct timespec t = {0, 0};

	if (left > 0) {
		t.tv_sec = left / 1000000;
		t.tv_nsec = (left % 1000000) * 1000;
	}
	return t;
}

#endif
