/*
 * say.h: fixed sentences for the operator, on descriptor 2.
 *
 * Purpose    Say what went wrong without ever saying content: no argument, path, environment value or
 *            output of a tool can be passed in, because there is no parameter for it.
 * Rights     None.
 * Used by    all modes.
 * Fails      silently: a full or closed log must not stop a kill, so a sentence that does not fit is dropped.
 */
#ifndef SAY_H
#define SAY_H

void say_as(const char *mode); /* once, at start: "spawner", "init", … */
void say(const char *sentence);
/* The sentence, a colon and the name of an errno's cause as the C library puts it. */
void say_errno(const char *sentence, int error);

#endif
