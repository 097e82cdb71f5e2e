/*
 * peercred.h: who is at the other end of a socket.
 *
 * Purpose    Node can't ask for SO_PEERCRED. The worker hands over a connection as descriptor 3 and reads the uid.
 * Rights     None.
 * Used by    main.c, mode `peercred`.
 * Fails      with exit status 1 and one sentence on standard error.
 */
#ifndef PEERCRED_H
#define PEERCRED_H

int peercred_main(void);

#endif
