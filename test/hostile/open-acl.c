/*
 * open-acl FOLDER UID: an access list on a folder, and the default one for what is made in it, that gives another user
 * all rights (acl(5); the layout is linux/posix_acl_xattr.h).
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/xattr.h>

struct entry {
	uint16_t tag, permissions;
	uint32_t id;
};

struct list {
	uint32_t version;
	struct entry entries[5];
};

int main(int argc, char **argv)
{
	if (argc != 3)
		return 64;
	const uint32_t nobody = UINT32_MAX;
	const uint32_t other = (uint32_t)strtoul(argv[2], NULL, 10);
	/* The owner, the other user, the owning group, the mask, the rest. */
	const struct list list = { 2,
				   { { 0x01, 7, nobody },
				     { 0x02, 7, other },
				     { 0x04, 0, nobody },
				     { 0x10, 7, nobody },
				     { 0x20, 0, nobody } } };
	const char *const names[] = { "system.posix_acl_access", "system.posix_acl_default" };
	for (int i = 0; i < 2; i++) {
		if (setxattr(argv[1], names[i], &list, sizeof list, 0) != 0)
			return 1;
	}
	return 0;
}
