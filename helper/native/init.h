/*
 * init.h: what `workspace-runner start` becomes.
 *
 * Purpose    PID 1 of a container, or an ordinary process. Brings itself down to the three capabilities and
 *            no_new_privs, ends what an earlier life left, starts worker and gateway and starts them again when they
 *            die, passes TERM on as a drain, and reaps.
 * Rights     In: root with at least CAP_CHOWN, CAP_SETGID, CAP_SETUID. Out: the worker is root with these three, the
 *            gateway its own uid with none.
 * Used by    deploy/workspace-runner: `init <gateway uid> <gateway gid> <node> <worker main.js> <gateway main.js>`.
 *            Each child gets `--init-channel=3`: one byte from the worker, 'R', once it serves; one byte to both, 'D',
 *            to drain; the channel's end of file tells them that init is gone.
 * Fails      with 64 for wrong arguments, 77 for missing rights, 78 when a child said that its configuration is
 *            wrong, 1 when something could not be ended; 0 after a stop that left nothing.
 */
#ifndef INIT_H
#define INIT_H

int init_main(char **args);

#endif
