/*
 * ending.h: until nothing of a run is left.
 *
 * Purpose    Reaps, and kills until wait() says ECHILD. An empty walk proves nothing; ECHILD does, since the
 *            supervisor is a subreaper: every orphan of the run becomes its child, whatever it did to get away.
 * Rights     The supervisor's. Kills are made by killers (killer.h).
 * Used by    run.c.
 * Fails      by going on: after END_LIMIT_MS the worker is told once (MSG_INCOMPLETE), trying does not stop.
 */
#ifndef ENDING_H
#define ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "run.h"

/* Reaps what has exited. True when no child is left at all. */
bool ending_reap(struct run *run);
/* Kills and reaps until no child is left. */
void ending_kill(struct run *run);

#endif
