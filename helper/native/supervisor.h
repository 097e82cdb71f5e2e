/*
 * supervisor.h: one connection.
 *
 * Purpose    Becomes (K, 0, 0) and a subreaper, reads the first message, and serves it: a run or the end of a uid.
 * Rights     In: the spawner's: root with the three capabilities. Its real uid K = KILLER_UID_FIRST + its pid
 *            is nobody else's; init knows a live run by it.
 * Used by    spawner.c, in a child of its own right after accept.
 * Fails      by MSG_FAILED with STEP_PLAN for a first message that is not one.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

/* `life` becomes readable (end of file) when the spawner dies. */
_Noreturn void supervisor_main(int connection, int life);

#endif
