/*
 * attack.c: a tool that does not want to end.
 *
 *   attack <way> [count]
 *
 * Purpose    Each way is one that has kept processes alive past somebody's supervisor. The tests in
 *            test/root/native run each under a user and prove that nothing of it is left.
 * Rights     A user's. It refuses to run with any id below the users' range: as root it would end the machine.
 * Fails      with 99 when it refuses, 98 when the kernel does not let it set its attack up. A way that is set up
 *            says "set" on standard output, so that a test knows that it tested something.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USERS_FIRST 20000
#define COMET_SECONDS 20
#define SESSIONS_MAX 256

static int count = 8;
static const char *word = "";

static _Noreturn void stay(void)
{
	for (;;)
		pause();
}

static _Noreturn void burn(void)
{
	for (volatile unsigned long spin = 0;; spin++)
		;
}

static void is_set(void)
{
	if (write(STDOUT_FILENO, "set\n", 4) != 4)
		_exit(98);
}

/* A child of the bare clone, with the flags and the exit signal given. */
static pid_t bare_clone(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
}

/* Forks and exits for ever; but should what is tested fail, not so long that the machine suffers. */
static _Noreturn void comet(void)
{
	time_t end = time(NULL) + COMET_SECONDS;

	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		if (time(NULL) > end)
			_exit(0);
		pid_t next = fork();

		if (next > 0)
			_exit(0);
		if (next < 0)
			sched_yield();
	}
}

static void start_each(int n, void (*what)(void))
{
	for (int i = 0; i < n; i++) {
		if (fork() == 0)
			what();
	}
}

static void daemon_child(void)
{
	setsid();
	if (fork() > 0)
		_exit(0);
	setsid();
	close_range(0, ~0U, 0);
	stay();
}

/* The leader exits, a grandchild keeps the pipes. */
static void hold(void)
{
	if (fork() == 0) {
		setsid();
		stay();
	}
	is_set();
	_exit(0);
}

static void daemons(void)
{
	start_each(count, daemon_child);
	while (wait(NULL) > 0)
		;
	is_set();
	stay();
}

static void stop_self(void)
{
	is_set();
	raise(SIGSTOP);
	stay();
}

static void bomb(void)
{
	is_set();
	for (;;) {
		if (fork() < 0)
			sched_yield();
	}
}

static void comet_child(void)
{
	setsid();
	comet();
}

static int gate[2];

static void comet_at_gate(void)
{
	char byte;

	/* A session each keeps it out of its leader's group. Not for thousands: the kernel shares the processors
	 * out by session, and nothing else on the machine would get on. */
	if (count <= SESSIONS_MAX)
		setsid();
	close(gate[1]);
	if (read(gate[0], &byte, 1) < 0) /* until the leader has started them all */
		_exit(98);
	close(gate[0]);
	comet();
}

static void start_chains(void)
{
	if (pipe(gate) != 0)
		_exit(98);
	start_each(count, comet_at_gate);
	close(gate[1]);
	is_set();
}

static void chains(void)
{
	start_chains();
	stay();
}

static void chains_and_exit(void)
{
	start_chains();
	usleep(300000); /* for them to get going */
	_exit(0);
}

/* Orphans come to a subreaper of the user's own, which lets them lie. */
static void own_subreaper(void)
{
	if (fork() == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
		setsid();
		start_each(count, daemon_child);
		start_each(2, comet_child);
		stay();
	}
	is_set();
	stay();
}

static void clone_parent(void)
{
	for (int i = 0; i < count; i++) {
		if (bare_clone(CLONE_PARENT | SIGCHLD) == 0) {
			setsid();
			stay();
		}
	}
	is_set();
	_exit(0);
}

static void clone_parent_chains(void)
{
	for (int i = 0; i < count; i++) {
		if (fork() == 0) {
			for (;;) {
				if (bare_clone(CLONE_PARENT | SIGCHLD) > 0)
					_exit(0);
			}
		}
	}
	is_set();
	stay();
}

/* Whoever waits for it sees a stop, not an end. */
static void traced_by_parent(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(98);
	is_set();
	raise(SIGSTOP);
	raise(SIGUSR1);
	stay();
}

static void *threads_fork(void *unused)
{
	(void)unused;
	for (;;) {
		if (fork() == 0) {
			if (fork() == 0)
				stay();
			stay();
		}
		usleep(1000);
	}
}

/* The main thread is gone, so the process looks dead; its other thread is not. */
static void zombie_leader(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, threads_fork, NULL) != 0)
		_exit(98);
	is_set();
	syscall(SYS_exit, 0);
}

static void odd_exit_signals(void)
{
	static const int signals[] = {0, SIGKILL, SIGSTOP, SIGUSR1, 64};

	is_set();
	/* Their parent gets these signals; the leader stays out of it. */
	if (fork() != 0)
		stay();
	for (int i = 0; i < count; i++) {
		if (bare_clone((unsigned long)signals[i % 5]) == 0) {
			if (i % 2 == 0)
				_exit(0);
			if (bare_clone(CLONE_PARENT | (unsigned long)signals[(i + 1) % 5]) == 0)
				stay();
			stay();
		}
	}
	stay();
}

/* A parent in vfork can't be killed before its child lets it go, unless the kernel makes it killable. */
static void vfork_waiters(void)
{
	for (int i = 0; i < count; i++) {
		if (fork() == 0) {
			if (bare_clone(CLONE_VFORK | CLONE_VM | SIGCHLD) == 0)
				stay();
			stay();
		}
	}
	is_set();
	stay();
}

/* A traced process that dies is reported to its tracer first, which never waits. */
static void tracers(void)
{
	int seized = 0;
	pid_t *traced = calloc((size_t)count, sizeof *traced);

	for (int i = 0; traced != NULL && i < count; i++) {
		traced[i] = fork();
		if (traced[i] == 0) {
			if (fork() == 0)
				stay();
			stay();
		}
	}
	if (traced != NULL && fork() != 0)
		stay();
	for (int i = 0; i < count; i++)
		seized += ptrace(PTRACE_SEIZE, traced[i], 0, PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK) == 0;
	if (seized > 0)
		is_set();
	stay();
}

static int write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	int result = file < 0 || write(file, text, strlen(text)) < 0 ? -1 : 0;

	if (file >= 0)
		close(file);
	return result;
}

static int enter_namespaces(void)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
		return -1;
	snprintf(map, sizeof map, "%u %u 1", uid, uid);
	if (write_file("/proc/self/uid_map", map) != 0 || write_file("/proc/self/setgroups", "deny") != 0)
		return -1;
	snprintf(map, sizeof map, "%u %u 1", gid, gid);
	return write_file("/proc/self/gid_map", map);
}

/* Its own first process in each of `count` namespaces, one in the other, ignoring all it may ignore. */
static void namespaces(void)
{
	for (int depth = 0; depth < count; depth++) {
		if (enter_namespaces() != 0)
			_exit(98);

		pid_t below = fork();

		if (below < 0)
			_exit(98);
		if (below > 0)
			stay(); /* the first process of its namespace: all in it would end with it */
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	}
	start_each(4, comet_child);
	start_each(4, daemon_child);
	is_set();
	stay();
}

/* Makes whatever runs with this uid and is not its own as slow as it can, from many busy processes, round the pids
 * that a supervisor's next children will have. */
static void slow_down(void)
{
	pid_t top = getppid();

	start_each(2, comet_child);
	for (int i = 0; i < count; i++) {
		if (fork() != 0)
			continue;
		for (unsigned n = 0;; n++) {
			struct sched_param none = {0};
			pid_t target = n % 4 == 0 ? top : (pid_t)((unsigned)getpid() + n % 512);

			if (target == getpid())
				continue;
			sched_setscheduler(target, SCHED_IDLE, &none);
			setpriority(PRIO_PROCESS, (id_t)target, 19);
		}
	}
	start_each(count, (void (*)(void))burn);
	is_set();
	burn();
}

static socklen_t abstract(struct sockaddr_un *address)
{
	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s", word);
	return (socklen_t)(sizeof address->sun_family + 1 + strlen(word));
}

/* Gives its standard output to a process outside of its run, then exits. */
static void pass_output(void)
{
	struct sockaddr_un address;
	socklen_t length = abstract(&address);
	int out = STDOUT_FILENO, fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char control[CMSG_SPACE(sizeof out)] = {0}, byte = 'x';
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof out);
	memcpy(CMSG_DATA(header), &out, sizeof out);
	if (connect(fd, (struct sockaddr *)&address, length) != 0 || sendmsg(fd, &message, 0) != 1)
		_exit(98);
	if (read(fd, &byte, 1) != 1) /* until the other has it and writes */
		_exit(98);
	is_set();
	_exit(0);
}

/* The process outside: takes a descriptor and writes to it for ever. */
static void take_output(void)
{
	struct sockaddr_un address;
	socklen_t length = abstract(&address);
	int out = -1, listener = socket(AF_UNIX, SOCK_STREAM, 0);
	char control[CMSG_SPACE(sizeof out)] = {0}, text[4096];
	struct iovec data = {text, 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};

	signal(SIGPIPE, SIG_IGN);
	if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0)
		_exit(98);
	is_set();

	int fd = accept(listener, NULL, NULL);

	if (recvmsg(fd, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == NULL)
		_exit(98);
	memcpy(&out, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof out);
	memset(text, '!', sizeof text);
	if (write(out, text, sizeof text) < 0 || write(fd, "x", 1) != 1)
		_exit(98);
	while (write(out, text, sizeof text) > 0)
		;
	is_set();
	stay();
}

/* Everything in the folders that all may write to. */
static void leave_files(void)
{
	char folder[64], name[128];

	snprintf(folder, sizeof folder, "/tmp/left-%u", getuid());
	if (mkdir(folder, 0700) != 0)
		_exit(98);
	snprintf(name, sizeof name, "%s/inner", folder);
	if (mkdir(name, 0700) != 0)
		_exit(98);
	snprintf(name, sizeof name, "%s/inner/file", folder);
	close(open(name, O_WRONLY | O_CREAT, 0600));
	snprintf(name, sizeof name, "%s/inner/out", folder);
	if (symlink(word, name) != 0)
		_exit(98);
	snprintf(name, sizeof name, "%s/inner", folder);
	chmod(name, 0);
	snprintf(name, sizeof name, "/tmp/link-%u", getuid());
	if (symlink(word, name) != 0)
		_exit(98);
	snprintf(name, sizeof name, "/dev/shm/left-%u", getuid());
	close(open(name, O_WRONLY | O_CREAT, 0600));
	is_set();
	_exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{"hold", hold},
	{"daemons", daemons},
	{"stop-self", stop_self},
	{"bomb", bomb},
	{"chains", chains},
	{"chains-and-exit", chains_and_exit},
	{"own-subreaper", own_subreaper},
	{"clone-parent", clone_parent},
	{"clone-parent-chains", clone_parent_chains},
	{"traced-by-parent", traced_by_parent},
	{"zombie-leader", zombie_leader},
	{"odd-exit-signals", odd_exit_signals},
	{"vfork-waiters", vfork_waiters},
	{"tracers", tracers},
	{"namespaces", namespaces},
	{"slow-down", slow_down},
	{"pass-output", pass_output},
	{"take-output", take_output},
	{"leave-files", leave_files},
};

int main(int argc, char **argv)
{
	uid_t ruid, euid, suid;

	if (getresuid(&ruid, &euid, &suid) != 0 || ruid < USERS_FIRST || euid < USERS_FIRST || suid < USERS_FIRST) {
		fprintf(stderr, "attack: refuses to run as anybody but a user\n");
		return 99;
	}
	if (argc > 2) {
		count = atoi(argv[2]);
		word = argv[2];
	}
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++) {
		if (strcmp(argv[1], ways[i].name) == 0)
			ways[i].run();
	}
	return 98;
}
