/*
 * wire.h: what the worker and the spawner say to each other. The only definition.
 *
 * Purpose    The trust boundary of the native program: every byte that the spawner's side
 *            reads from a connection is described here and checked by plan.c; every byte it
 *            sends is described here and checked again by worker/runs/.
 * Rights     None. Constants only.
 * Used by    the files beside it, and helper/contract.ts, which restates the numbers. A test
 *            reads this file and compares the two.
 *
 * One connection to the spawner's socket carries one request and its answers.
 *
 * MESSAGE, both ways; all integers are unsigned and big-endian unless said otherwise:
 *
 *   offset size
 *        0    4  kind (one of MSG_*)
 *        4    4  length of the body in bytes
 *        8    …  body
 *
 * WORKER → SPAWNER. The first message is MSG_RUN, MSG_BESIDE, MSG_HELPER or MSG_END. After the first three the worker
 * may send MSG_STOP, once and last; after MSG_HELPER also MSG_USER, once, and MSG_STDIN; after a MSG_RUN whose standard
 * streams are STDIO_PIPES or STDIO_TERMINAL also MSG_STDIN and MSG_SIGNAL, and with a terminal MSG_RESIZE. Anything else
 * ends the run and the connection.
 *
 * MSG_RUN body (the launch plan), RUN_FIXED bytes and then strings:
 *
 *        0    4  format version, WIRE_VERSION
 *        4    4  uid = gid of the run, USER_UID_FIRST..USER_UID_LAST
 *        8    8  time limit in ms, 0 = none, at most LIMIT_TIME_MS_MAX
 *       16    8  output cap in bytes, for each of stdout and stderr; what is over it is dropped.
 *                This and the three limits: at most LIMIT_NUMBER_MAX
 *       24    8  RLIMIT_NPROC, 0 = not set
 *       32    8  RLIMIT_FSIZE in bytes, 0 = not set
 *       40    8  RLIMIT_AS in bytes, 0 = not set
 *       48    4  grace in ms between SIGTERM to the leader's group and SIGKILL to all of the run,
 *                0 = no SIGTERM; at most LIMIT_GRACE_MS_MAX. Only for ends that the tool did not choose.
 *                Other standard streams than STDIO_EMPTY: SIGTERM goes to every process of the run, with a terminal
 *                also SIGHUP, and the grace lasts until none of them is left.
 *       52    4  number of arguments, argv[0] included, 1..LIMIT_ARGS_MAX
 *       56    4  number of environment entries, 0..LIMIT_ENV_MAX
 *       60    4  length of the strings in bytes; RUN_FIXED + it = the body's length
 *       64    4  standard streams (STDIO_*)
 *       68    4  size of the terminal, as MSG_RESIZE; 0 unless STDIO_TERMINAL
 *       72    …  strings, each ended by one NUL, in this order and nothing after them:
 *                program (absolute), space (absolute), directory (relative to home; empty = home),
 *                the arguments, the environment entries (KEY=VALUE)
 *
 * MSG_BESIDE body: as MSG_RUN's, with STDIO_EMPTY. Its user may have a run beside it, which must not notice its end:
 *                files in /tmp are left alone, and what it is, one process, is ended by itself.
 *
 * MSG_HELPER body: as MSG_RUN's, and in it 0: uid, time limit, RLIMIT_AS, grace, standard streams; empty: space,
 *                directory. The program starts as root with the service's capabilities, in the folder /, with a pipe as
 *                standard input and /dev/null as standard error. What it becomes is up to it; nothing that a user wrote
 *                may reach it before it has dropped.
 *
 * MSG_USER body: 4 bytes, the uid that a helper is about to drop to. Said before the helper learns it: from here
 *                on its end is sought among that user's processes as well as among root's.
 *
 * MSG_STDIN body: 0..RELAY_MAX bytes for the standard input; none = its end, and no MSG_STDIN may follow. The worker
 *                has at most STDIN_WINDOW bytes on their way that MSG_STDIN_TAKEN has not told of, so that a
 *                program that does not read never keeps MSG_STOP from being read.
 *
 * MSG_RESIZE body: 4 bytes, the terminal's rows and columns, 2 bytes each, neither of them 0.
 *
 * MSG_SIGNAL body: 4 bytes, SIGHUP, SIGINT or SIGTERM: to the terminal's foreground group; without a terminal, to the leader's
 *                group. SIGKILL: as MSG_STOP, without any grace.
 *
 * MSG_END body: 4 bytes, a uid. Ends every process of that uid, whoever its parent is.
 *
 * MSG_STOP body: empty. Ends the run; MSG_EXIT still follows.
 *
 * SPAWNER → WORKER:
 *
 *   MSG_STDOUT, MSG_STDERR   1..RELAY_MAX bytes that the tool wrote; to a terminal: MSG_STDOUT only. With STDIO_PIPES an
 *                  empty one says that nobody can write to that pipe any more; no output of that stream follows
 *   MSG_STARTED     empty: the tool was executed. Told with STDIO_PIPES and STDIO_TERMINAL, before its output; MSG_EXIT
 *                   with END_EXITED says the same
 *   MSG_FAILED      8 bytes: step (STEP_*), errno. The tool has not run. Last message.
 *   MSG_INCOMPLETE 40 bytes, as MSG_EXIT: the run could not be ended within END_LIMIT_MS. Trying goes on;
 *                  MSG_EXIT follows if it ends.
 *   MSG_EXIT       40 bytes: the whole run is gone (wait() said ECHILD). Last message.
 *        0    4  reason (END_*)
 *        4    4  flags (EXIT_*)
 *        8    4  exit code of the leader (0..255), 0 unless EXIT_HAS_CODE
 *       12    4  signal that ended the leader, 0 unless EXIT_HAS_SIGNAL
 *       16    8  largest resident set of any process of the run, bytes
 *       24    8  CPU time of the run, user and system, µs
 *       32    8  time from the tool's start to the end of the whole run, µs
 *   MSG_ENDED       empty: no process of that uid is left. Last message, answers MSG_END.
 *   MSG_STDIN_TAKEN 4 bytes, how many bytes of standard input were written to the program's pipe or terminal, or thrown away
 *                   since it has closed that, beyond those told before
 *
 * The spawner's side ends a connection by shutting down its sending half and reading to the end
 * (bounded): closing a Unix socket with unread input would throw away MSG_EXIT. The worker's end of
 * file means: end the run, nobody listens any more.
 */
#ifndef WIRE_H
#define WIRE_H

#define WIRE_VERSION 2

#define MSG_RUN 1
#define MSG_STOP 2
#define MSG_END 3
#define MSG_HELPER 4
#define MSG_USER 5
#define MSG_STDIN 6
#define MSG_BESIDE 7
#define MSG_RESIZE 8
#define MSG_SIGNAL 9
#define MSG_STDOUT 16
#define MSG_STDERR 17
#define MSG_FAILED 18
#define MSG_INCOMPLETE 19
#define MSG_EXIT 20
#define MSG_ENDED 21
#define MSG_STDIN_TAKEN 22
#define MSG_STARTED 23

#define MSG_HEADER 8
#define RUN_FIXED 72
#define EXIT_BODY 40
#define PLAN_MAX 4194304
#define RELAY_MAX 65536
#define STDIN_WINDOW 131072

#define LIMIT_ARGS_MAX 65536
#define LIMIT_ENV_MAX 256
#define LIMIT_TIME_MS_MAX 604800000
#define LIMIT_GRACE_MS_MAX 5000
/* The output cap and the three limits: what a JavaScript number holds exactly. */
#define LIMIT_NUMBER_MAX 9007199254740991
#define END_LIMIT_MS 5000

/* A tool's standard streams. */
#define STDIO_EMPTY 0    /* standard input is empty; two pipes for output */
#define STDIO_PIPES 1    /* three pipes */
#define STDIO_TERMINAL 2 /* one pseudo-terminal for all three, the controlling one of the tool's session */

#define USER_UID_FIRST 20000
#define USER_UID_LAST 1020000
/* A supervisor's real uid is this + its pid: nobody else's, so that with effective uid U it reaches exactly U. */
#define KILLER_UID_FIRST 1073741824

/* Why a run ended. */
#define END_EXITED 1       /* the leader exited or was ended by a signal */
#define END_TIMEOUT 2      /* the time limit passed */
#define END_STOPPED 3      /* MSG_STOP */
#define END_SPAWNER_LOST 4 /* the spawner died; its supervisors end their runs */

#define EXIT_HAS_CODE 1
#define EXIT_HAS_SIGNAL 2
#define EXIT_STDOUT_CUT 4
#define EXIT_STDERR_CUT 8

/* The set-up step that failed. Steps up to STEP_FORK are the supervisor's, the rest the child's, in this order. */
#define STEP_PLAN 1
#define STEP_SPACE 2
#define STEP_PIPES 3
#define STEP_FORK 4
#define STEP_SESSION 5
#define STEP_OOM_SCORE 6 /* and its nice value */
#define STEP_LIMITS 7
#define STEP_GROUPS 8
#define STEP_GID 9
#define STEP_UID 10
#define STEP_VERIFY 11
#define STEP_NO_NEW_PRIVS 12
#define STEP_HOME 13
#define STEP_DIRECTORY 14
#define STEP_DESCRIPTORS 15
#define STEP_SIGNALS 16
#define STEP_EXEC 17

#endif
