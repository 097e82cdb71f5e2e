/*
 * rights.c: capabilities by the bare system calls. See rights.h.
 */
#define _GNU_SOURCE
#include "rights.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t join(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

int rights_read(struct rights *rights)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};

	if (syscall(SYS_capget, &header, data) != 0)
		return -1;
	rights->effective = join(data[0].effective, data[1].effective);
	rights->permitted = join(data[0].permitted, data[1].permitted);
	rights->inheritable = join(data[0].inheritable, data[1].inheritable);
	return 0;
}

bool rights_ambient_empty(void)
{
	for (unsigned long cap = 0; cap < 64; cap++) {
		int set = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0);

		if (set < 0)
			return cap > 0 && errno == EINVAL; /* past the last capability of this kernel */
		if (set > 0)
			return false;
	}
	return true;
}

int rights_keep(uint64_t kept)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)kept, .permitted = (uint32_t)kept, .inheritable = 0},
		{.effective = (uint32_t)(kept >> 32), .permitted = (uint32_t)(kept >> 32), .inheritable = 0},
	};
	struct rights now;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 || syscall(SYS_capset, &header, data) != 0)
		return -1;
	if (rights_read(&now) != 0)
		return -1;
	if (now.effective != kept || now.permitted != kept || now.inheritable != 0 || !rights_ambient_empty()) {
		errno = EPERM;
		return -1;
	}
	return 0;
}
