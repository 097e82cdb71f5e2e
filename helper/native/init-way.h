/*
 * init-way.h: nothing of the last worker may be left when the next one starts.
 *
 * Purpose    A new worker and a run of the last one would both write to a user's space. What a dead worker left, its
 *            spawner and supervisors, comes to init and is given time to end its runs; users' processes that nobody
 *            looks after are ended at once.
 * Rights     init's.
 *            Nor may anything that a gateway started outlive it: it could stop, trace or stand in for the next one.
 * Used by    init.c, before each start of a worker or a gateway, and at the stop.
 * Fails      closed: the worker does not start before all of it is gone. Said once, after 10 seconds; then spawner
 *            and supervisors are killed too.
 */
#ifndef INIT_WAY_H
#define INIT_WAY_H

#include <stdbool.h>
#include <sys/types.h>

#include "killer.h"

/* False: it is being seen to; ask again soon. */
bool init_way_is_clear(struct killers *killers);
/* The same for what runs as the gateway beneath init; asked while no gateway of ours should be there. */
bool init_gateway_is_gone(struct killers *killers, uid_t gateway);

#endif
