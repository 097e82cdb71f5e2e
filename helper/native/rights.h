/*
 * rights.h: reading and narrowing this process's capabilities, without a library.
 *
 * Purpose    The service needs CAP_CHOWN, CAP_SETGID and CAP_SETUID and holds nothing else; a tool holds none.
 * Rights     Narrowing needs none. Nothing here can widen.
 * Used by    drop.c, spawner.c, init-rights.c.
 * Fails      with -1 and errno.
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

#define RIGHTS_SERVICE ((UINT64_C(1) << CAP_CHOWN) | (UINT64_C(1) << CAP_SETGID) | (UINT64_C(1) << CAP_SETUID))

struct rights {
	uint64_t effective;
	uint64_t permitted;
	uint64_t inheritable;
};

int rights_read(struct rights *rights);
/* Effective and permitted become exactly `kept`, inheritable and ambient become empty; all of it read back. */
int rights_keep(uint64_t kept);
bool rights_ambient_empty(void);

#endif
