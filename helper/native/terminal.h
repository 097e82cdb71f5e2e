/*
 * terminal.h: the pseudo-terminal of a run.
 *
 * Purpose    Makes the pair (pty(7)): our end, and the tool's, which becomes the controlling terminal of its session and
 *            belongs to its user, so that programs can open /dev/tty and the terminal's own name again. Its modes are
 *            the kernel's defaults.
 * Rights     CAP_CHOWN for the owner. It is opened by number, not by name, so what is mounted on /dev/pts besides does
 *            not matter, and O_NOCTTY: it must never become the terminal of who opens it here.
 * Used by    launch.c, launch-child.c, request.c.
 * Fails      with -1 and errno, by terminal_open and terminal_take alone.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdint.h>
#include <sys/types.h>

/* `size` as MSG_RESIZE has it. Our end is non-blocking; the tool's is not. */
int terminal_open(uid_t user, uint32_t size, int *ours, int *tools);
/* For the child, in its new session: the terminal is its controlling one. */
int terminal_take(int tools);
/* The kernel tells the foreground group. */
void terminal_resize(int ours, uint32_t size);
/* The foreground process group, or 0 when there is none. */
pid_t terminal_foreground(int ours);

#endif
