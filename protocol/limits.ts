/**
 * Every fixed number that both sides agree on. What an operator can set is in settings.ts.
 * The numbers of the launch wire format are in helper/native/wire.h.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Largest user number; user n runs as uid = gid = 20000 + n. */
export const userNumberMax = 1_000_000;
/** uid of user 0. */
export const userUidFirst = 20_000;

/** Largest frame between gateway and worker, bytes after the length prefix. */
export const frameBytesMax = 4 * MiB;
/** Deepest nesting of a message. */
export const messageDepthMax = 16;
/** Most values in one message, keys included: 4 MiB of empty containers would otherwise become hundreds of MiB. */
export const messageValuesMax = 131_072;
/** Requests in flight on one link; more are refused with `overloaded`. */
export const requestsInFlightMax = 512;
/** Largest piece of output in one event, bytes: small, so that a large output never holds up a small reply for long. */
export const eventBytesMax = 64 * KiB;
/** Bytes of events that may be on their way for one request before the worker waits for more credit. */
export const eventCreditBytes = 256 * KiB;
/** A gateway that takes no output of a request for this long ends the link, ms. */
export const creditStallMs = 30_000;
/** A link on which nothing was sent for this long sends a ping, ms. */
export const heartbeatIntervalMs = 3_000;
/** A link on which nothing arrived for this long counts as dropped, ms. Long enough for a stalled event loop. */
export const heartbeatSilenceMs = 10_000;
/** The other side says hello within this, ms. */
export const helloTimeoutMs = 5_000;

/** Most entries in the answer of files.list. */
export const listEntriesMax = 2_000;
/** Largest content that files.read gives, bytes. */
export const readBytesMax = 256 * KiB;
/** How far into a file a NUL makes it binary, bytes. */
export const readProbeBytes = 8 * KiB;
/** Longest `dir` or path, UTF-16 code units (PATH_MAX is 4,096 bytes). */
export const pathLengthMax = 4096;
/** Most arguments of one run; see LIMIT_ARGS_MAX in helper/native/wire.h, less the server's own. */
export const argumentsMax = 65_000;
/** Most environment entries of one request. */
export const environmentEntriesMax = 128;
/** Threads of a user's fs helper count towards RLIMIT_NPROC; the limit that is set is the configured one and these. */
export const processesForHelper = 16;

/** Entries of a space that are counted; one with more is `truncated`, and over any quota. */
export const usageEntriesMax = 500_000;
/** Groups, and direct entries of a space, that an answer lists: the largest. */
export const usageListedMax = 1_000;
/** Whoever asks for a user's usage waits this long, ms, and no count takes longer. */
export const usageTimeoutMs = 30_000;
/** How long a count is good for when nothing is known to have changed, ms. */
export const usageCacheMs = 30_000;

/** A run that does not end within this after SIGKILL is `kill_incomplete`, ms. */
export const killLimitMs = 5_000;
/** Between SIGTERM and SIGKILL for tools that have something to clean up (git's lock files), ms. */
export const termGraceMs = 300;
/** Between SIGTERM to a process's tree and SIGKILL, ms. Short, since what lost its link is to be gone within 2 s. */
export const processGraceMs = 500;
/** Largest piece of a process's output that one answer gives, bytes: U+FFFD may triple it, and a frame still holds it. */
export const processReadBytesMax = MiB;
/** The same of an event of its stream: what waits for a client that reads slowly. */
export const processEventBytesMax = 128 * KiB;
/** Longest that a read waits for something new, ms. */
export const processWaitMsMax = 30_000;
/** Largest piece of standard input in one write, bytes. */
export const processWriteBytesMax = 64 * KiB;
/** Repeated writes are known by the newest so many `writeId`s of a process. */
export const processWriteIdsMax = 1_024;
/** A process's terminal, until it is resized. */
export const terminalSize = { rows: 24, cols: 80 } as const;

/** How long a stopping process waits for what is under way, ms. Short, so that nothing of a user's outlives a stop by 2 s. */
export const drainLimitMs = 1_000;
/** What an operation may take on the link beyond its own time limit and the kill grace, ms. */
export const linkSlackMs = 5_000;

/** HTTP: request headers arrive within this, ms. */
export const headersTimeoutMs = 10_000;
/** HTTP: a whole request arrives within this, ms. */
export const requestTimeoutMs = 30_000;
/** HTTP: an idle connection is kept this long, ms. */
export const keepAliveTimeoutMs = 65_000;
/** HTTP: an answer that a client does not read is given up after this without progress, ms. */
export const responseStallMs = 30_000;
/** Streams of events that may be open: each is a request in flight most of the time, and others need room beside them. */
export const eventStreamsMax = 256;
/** Reads of processes that wait for something new; more are answered at once. With the streams less than all places of the link. */
export const waitingReadsMax = 128;
/** A stream of events that has nothing to tell says so after this, ms. */
export const keepAliveCommentMs = 15_000;
/** HTTP: open connections. */
export const connectionsMax = 1024;
/** HTTP: request head, bytes (Node's own default). */
export const headerBytesMax = 16 * KiB;

/** Audit lines that wait for their reader, bytes; at this, new mutations are refused. */
export const auditQueueBytesMax = MiB;
/** Log lines that wait for their reader, bytes; beyond it lines are dropped. */
export const logQueueBytesMax = MiB;
/** Full answers of finished operations, kept for those who ask again: altogether, of one operation, and for how long. */
export const answersBytesMax = 8 * MiB;
export const answerBytesMax = MiB;
export const answersRetainMs = 600_000;
/** The ledger's answer to one request takes no longer than this, or it counts as unavailable, ms. */
export const ledgerTimeoutMs = 5_000;

/** Shortest service token, characters. */
export const tokenLengthMin = 32;
