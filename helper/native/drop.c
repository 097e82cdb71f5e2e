/*
 * drop.c: from root to a user, with no way back. See drop.h.
 *
 * The order matters: groups and gid while still root, the uid last. Then nothing is believed: each id is read
 * back, each capability set is read back, and each way to get root back is tried and must fail.
 */
#define _GNU_SOURCE
#include "drop.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rights.h"
#include "wire.h"

static bool ids_are(uid_t uid, gid_t gid)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;

	if (getresuid(&ruid, &euid, &suid) != 0 || getresgid(&rgid, &egid, &sgid) != 0)
		return false;
	if (ruid != uid || euid != uid || suid != uid || rgid != gid || egid != gid || sgid != gid)
		return false;
	/* The file system ids follow the effective ones; -1 only asks. */
	return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid;
}

static bool rights_are_empty(void)
{
	struct rights rights;

	if (rights_read(&rights) != 0)
		return false;
	return rights.effective == 0 && rights.permitted == 0 && rights.inheritable == 0 && rights_ambient_empty();
}

static bool way_back_is_shut(void)
{
	const uid_t same_uid = (uid_t)-1;
	const gid_t same_gid = (gid_t)-1;

	return setuid(0) != 0 && setresuid(0, 0, 0) != 0 && setresuid(same_uid, 0, same_uid) != 0 &&
	       setgid(0) != 0 && setresgid(0, 0, 0) != 0 && setresgid(same_gid, 0, same_gid) != 0 &&
	       setgroups(0, NULL) != 0;
}

uint32_t drop_to(uid_t uid, gid_t gid)
{
	errno = EINVAL;
	if (uid == 0 || uid == (uid_t)-1)
		return STEP_UID;
	if (gid == 0 || gid == (gid_t)-1)
		return STEP_GID;

	if (setgroups(0, NULL) != 0)
		return STEP_GROUPS;
	if (setresgid(gid, gid, gid) != 0)
		return STEP_GID;
	if (setresuid(uid, uid, uid) != 0)
		return STEP_UID;

	if (getgroups(0, NULL) != 0 || !ids_are(uid, gid) || !rights_are_empty() || !way_back_is_shut() ||
	    !ids_are(uid, gid)) {
		errno = EPERM;
		return STEP_VERIFY;
	}

	/* Set-uid programs and file capabilities give nothing any more, for this process and all that it starts. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return STEP_NO_NEW_PRIVS;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
		errno = EPERM;
		return STEP_NO_NEW_PRIVS;
	}
	return 0;
}
