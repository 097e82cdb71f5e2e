/*
 * init-rights.c: down to what the service needs, whatever it was given. See init-rights.h.
 */
#define _GNU_SOURCE
#include "init-rights.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "processes.h"
#include "rights.h"
#include "say.h"

/* Needs CAP_SETPCAP, which production does not give. Where it is missing the set stays: no_new_privs keeps root's
 * exec from gaining what is in it. */
static void narrow_bounding_set(void)
{
	for (unsigned long cap = 0; cap < 64; cap++) {
		if ((RIGHTS_SERVICE >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
			return;
	}
}

bool init_rights(void)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;
	struct rights rights;

	if (getresuid(&ruid, &euid, &suid) != 0 || getresgid(&rgid, &egid, &sgid) != 0 || rights_read(&rights) != 0 ||
	    (ruid | euid | suid) != 0 || (rgid | egid | sgid) != 0 ||
	    (rights.effective & RIGHTS_SERVICE) != RIGHTS_SERVICE) {
		say("must be root with the capabilities chown, setgid and setuid");
		return false;
	}
	narrow_bounding_set();
	if (setgroups(0, NULL) != 0 || getgroups(0, NULL) != 0 || rights_keep(RIGHTS_SERVICE) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
		say_errno("rights can't be narrowed", errno);
		return false;
	}
	return true;
}

bool init_read_id(const char *text, unsigned *id)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || *text < '0' || *text > '9' || *end != 0 || value == 0 || value > 0x7fffffff ||
	    is_user((uid_t)value) || is_killer((uid_t)value))
		return false;
	*id = (unsigned)value;
	return true;
}
