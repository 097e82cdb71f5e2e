/*
 * usage-folder.h: opens one folder of the user for the count, whatever mode it has.
 *
 * Purpose    What is hidden in a folder that its owner closed (mode 000) counts too. It is opened up through the held
 *            descriptor, never by name, so that nothing else can be put in its place, and closed again afterwards.
 * Rights     The user's own.
 * Used by    usage-walk.c.
 * Fails      folder_open returns false with an errno; ENOENT, ENOTDIR and ELOOP mean that no such folder is there
 *            any more. A count that is killed leaves the folders open that it is just in.
 */
#ifndef USAGE_FOLDER_H
#define USAGE_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

struct folder {
	int fd;
	bool opened_up;
	mode_t mode; /* what it had before, if it was opened up */
};

/* `name` is one name beneath `parent`; a link is not followed. */
bool folder_open(struct folder *folder, int parent, const char *name);
void folder_close(const struct folder *folder);

#endif
