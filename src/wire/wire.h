/*
 * wire - the messages between sluiced and its peers
 *
 * One list (messages.def) gives structs, numbers, names, sizes and checks. Nothing is
 * allocated; a message is a value. Thread-safe as sendmsg(2) and recvmsg(2) are: a datagram is
 * never split, so several threads may send on one socket. libc only (glibc 2.17).
 */
#ifndef SL_WIRE_WIRE_H
#define SL_WIRE_WIRE_H

#include "base/amount.h"
#include "base/error.h"

#include <sys/socket.h>
#include <sys/types.h>

/* What we speak, and the oldest that we still understand. */
#define SL_PROTOCOL_VERSION 4
#define SL_PROTOCOL_OLDEST  1

#define SL_WIRE_TOKEN_BYTES 16
#define SL_WIRE_UUID_BYTES  16

enum sl_role { SL_ROLE_CLIENT = 0, SL_ROLE_CONTROL, SL_ROLES };

enum sl_reject {               /* what libsluice.so turns into: see runtime */
	SL_REJECT_VERSION = 0, /* another protocol version */
	SL_REJECT_WORKLOAD, /* no workload of that token, nor one among the ancestors */
	SL_REJECT_USER,     /* the workload belongs to another user */
	SL_REJECT_PROTOCOL, /* a message that was not one */
	SL_REJECT_FULL,     /* no descriptors or slots left; try again */
	SL_REJECT_DENIED,   /* not for this peer */
	SL_REJECTS
};

enum sl_list_what {
	SL_LIST_USES = 0,
	SL_LIST_GPUS,
	SL_LIST_STATUS,
	SL_LIST_CLIENTS,   /* since version 2 */
	SL_LIST_TROUBLES,  /* since version 2 */
	SL_LIST_HELD,      /* since version 3 */
	SL_LIST_SWAP,      /* since version 4 */
	SL_LIST_POOL,      /* since version 4 */
	SL_LIST_PROJECTS,  /* since version 4 */
	SL_LIST_JOBS,      /* since version 4 */
	SL_LIST_QUEUE,     /* since version 4 */
	SL_LIST_PARTS,     /* since version 4 */
	SL_LIST_RESOURCES, /* since version 4 */
	SL_LIST_ENTRIES,   /* since version 4 */
	SL_LISTS
};
enum sl_state {
	SL_STATE_RESERVED = 0,
	SL_STATE_BOUND,
	SL_STATE_WAITING,
	SL_STATE_GONE,
	SL_STATES
};

/* Of a job as a whole. */
enum sl_job_state {
	SL_JOB_QUEUED = 0, /* no task of it runs */
	SL_JOB_RUNNING,    /* some do */
	SL_JOB_PARKED,     /* none runs, and some have what they did on the host */
	SL_JOB_STOPPING,   /* somebody asked for its end */
	SL_JOB_DONE,       /* all tasks ended with 0 */
	SL_JOB_FAILED,     /* one failed for good */
	SL_JOB_STOPPED,    /* it ended because somebody asked for it */
	SL_JOB_STATES
};
/* flags of SUBMIT and JOB_ROW; beside SL_RUN_* */
#define SL_SUBMIT_PREEMPTIBLE 0x100u
#define SL_SUBMIT_TERMINATES \
	0x200u               /* reclaim ends it and queues it again; else it is parked */
#define SL_SUBMIT_TRY 0x400u /* only says what would become of it */
/* warm_after_ms 0 is meant, and not the daemon's */
#define SL_SUBMIT_NEVER_WARM 0x800u
/* idle_grace_ms is meant, and not the daemon's */
#define SL_SUBMIT_GRACE 0x1000u
/* Of SET_WARM: it stays as it is. */
#define SL_WARM_AS_IT_IS UINT64_MAX
/* Numbers of jobs from here on: `sluice run`s that wait, or were parked for others; the rest is the
 * number of the workload. */
#define SL_JOB_FOREGROUND (1ull << 63)
/* exit_status of what nobody saw end */
#define SL_JOB_LOST        UINT32_MAX
#define SL_JOB_TASKS_MAX   1024
#define SL_JOB_RETRIES_MAX 100
/* Longest --preempt-delay: 30 days, in milliseconds. */
#define SL_JOB_DELAY_MS_MAX 2592000000u

/* flags of PROJECT_PUT and PROJECT_ROW */
#define SL_PROJECT_NO_SWAP 1u
/* Of a ROW: the daemon could not read what it had stored, and these are not all. */
#define SL_PROJECT_UNREAD 2u

/* Of HISTORY: what is asked, what one row is of, and how it is written. */
enum sl_history_what {
	SL_HISTORY_USAGE = 0, /* figures by `by` */
	SL_HISTORY_SERIES,    /* one workload over time, with what happened to it */
	SL_HISTORY_EVENTS,    /* events that are kept; name: about this workload */
	SL_HISTORY_ADVICE,    /* requests and limits that would do, by program */
	SL_HISTORY_WHATS
};
enum sl_history_by {
	SL_HISTORY_BY_USER = 0,
	SL_HISTORY_BY_PROJECT,
	SL_HISTORY_BY_GPU,
	SL_HISTORY_BY_WORKLOAD,
	SL_HISTORY_BY_PROGRAM,
	SL_HISTORY_BYS
};
enum sl_history_format { SL_HISTORY_JSON = 0, SL_HISTORY_CSV, SL_HISTORY_FORMATS };

/* As enum sl_probe and enum sl_client_condition of the policy, which the daemon maps. */
enum sl_wire_probe {
	SL_WIRE_PROBE_OFF = 0,
	SL_WIRE_PROBE_WATCH,
	SL_WIRE_PROBE_PROVE,
	SL_WIRE_PROBES
};
enum sl_wire_condition {
	SL_WIRE_RUNNING = 0,
	SL_WIRE_STOPPED,
	SL_WIRE_TRACED,
	SL_WIRE_SILENT,
	SL_WIRE_CONDITIONS
};

/* What became of an IPC_OFFER or IPC_OPEN. */
enum sl_wire_ipc_reason {
	SL_IPC_OK = 0,
	SL_IPC_UNKNOWN, /* there is no such offer, or none for this user */
	SL_IPC_UNSEEN,  /* the memory is on a GPU that the opener does not have */
	SL_IPC_FULL,    /* the daemon has no place or no descriptors left */
	SL_IPC_BAD,     /* sizes that do not fit together, or a key of somebody else's */
	SL_IPC_REASONS
};

/* As enum sl_swap_outcome, sl_swap_cause and sl_residency of the policy. */
enum sl_wire_swap_outcome {
	SL_WIRE_SWAP_OK = 0,
	SL_WIRE_SWAP_PART,
	SL_WIRE_SWAP_REFUSED,
	SL_WIRE_SWAP_OUTCOMES
};
enum sl_wire_swap_cause {
	SL_WIRE_SWAP_NO_CAUSE = 0,
	SL_WIRE_SWAP_CAPTURE,
	SL_WIRE_SWAP_BUSY,
	SL_WIRE_SWAP_NO_HOST,
	SL_WIRE_SWAP_DRIVER,
	SL_WIRE_SWAP_NO_ROOM,
	SL_WIRE_SWAP_BROKEN,
	SL_WIRE_SWAP_NOTHING,
	SL_WIRE_SWAP_ABORTED,
	SL_WIRE_SWAP_CAUSES
};
enum sl_wire_residency {
	SL_WIRE_RESERVED = 0,
	SL_WIRE_BOUND,
	SL_WIRE_LEAVING,
	SL_WIRE_EVICTED,
	SL_WIRE_WARM,
	SL_WIRE_RETURNING,
	SL_WIRE_PARKED,
	SL_WIRE_RESUMING,
	SL_WIRE_PARTIAL,
	SL_WIRE_PARKING,
	SL_WIRE_RESIDENCIES
};
/* SWAP_ROW.endless: why its longest wait has no bound. */
enum sl_wire_endless {
	SL_WIRE_ENDLESS_UNSAID = 0, /* it has one, or the daemon is too old to say */
	SL_WIRE_ENDLESS_STAYS,
	SL_WIRE_ENDLESS_HOST,
	SL_WIRE_ENDLESS_POOL,
	SL_WIRE_ENDLESS_BOUND,
	SL_WIRE_ENDLESS_WHOLE,
	SL_WIRE_ENDLESS_REQUESTS
};
/* Until somebody resumes it, whether all of it has left already or not. */
static inline bool sl_wire_is_parked(uint32_t residency)
{
	return residency == SL_WIRE_PARKED || residency == SL_WIRE_PARKING;
}
/* Nobody keeps its request for it. */
static inline bool sl_wire_gave_up_request(uint32_t residency)
{
	return sl_wire_is_parked(residency) || residency == SL_WIRE_RESUMING;
}
/* STORE.flags: its pages are huge ones */
#define SL_STORE_HUGE 1u
/* FREED.flags, since version 4: the bytes were on the host */
#define SL_FREED_EVICTED 1u

/* What does not work in the daemon. */
enum sl_wire_trouble { SL_TROUBLE_JOURNAL = 0, SL_WIRE_TROUBLES };

/* What it needs for projects and jobs (the supervisor's program, the database, the folder), its
 * history, and the page. */
enum sl_wire_part {
	SL_PART_SHIM = 0,
	SL_PART_PROJECTS,
	SL_PART_JOBS,
	SL_PART_HISTORY,
	SL_PART_PAGE,
	SL_PART_METRICS,
	SL_WIRE_PARTS
};
enum sl_health {
	SL_HEALTH_GOOD = 0,
	SL_HEALTH_PARTLY, /* some of it cannot be read, or the last change was not stored */
	SL_HEALTH_BROKEN, /* it cannot be used */
	SL_HEALTHS
};
#define SL_QUEUE_ROWS 5

#define SL_HELLO_FORKED    1u /* the parent of this process is a client too */
#define SL_RUN_VISIBLE_SET 1u
#define SL_RUN_NO_SWAP     2u /* since version 2 */
#define SL_RUN_OOM_FIRST   4u /* since version 2 */
#define SL_RUN_OOM_WAIT \
	8u /* since version 2: not even if the daemon's default is oom_first */
/* Since version 4: its memory may be registered with other devices, so SL_RUN_NO_SWAP is set, too,
 * and stays. */
#define SL_RUN_RDMA 16u
#define SL_RUN_ALL  31u
/* Of RUN alone, since version 4: where it cannot start at once it waits, and is told why by
 * RUN_WAITS. */
#define SL_RUN_WAIT 32u
/* Of RUN alone, since version 4: no limit is meant, only what it needs is watched; for advice. */
#define SL_RUN_OBSERVE 64u
/* WELCOME.flags, since version 4: memory is to be made so that it can be registered */
#define SL_WELCOME_RDMA 1u
#define SL_RDMA_SINCE   4
/* ASK.flags, since version 3: what is made must not be evicted, so it may not stand on requests of
 * others */
#define SL_ASK_HELD 1u
/* With SL_ASK_HELD: the bytes exist and are charged already, and are only to become held.
 * Granted or denied without a wait (but for a daemon's start); COMMIT says that they are. */
#define SL_ASK_THERE 2u
/* The first context of the process on that GPU is to be made: bytes are 1, and mean nothing. COMMIT
 * of 0 bytes once it is made, and has been measured, or could not be made. A daemon that does not
 * know the flag grants the byte. */
#define SL_ASK_CONTEXT 4u
/* Descriptors that one message carries at most. */
#define SL_WIRE_FDS_MAX 32
/* PIDS_ROWS: its flags, and what its rows are; since version 3. */
#define SL_PIDS_LAST 1u
/* The asker's pid namespace is the daemon's, so NVML's pids are the asker's own, too. */
#define SL_PIDS_SAME     2u
#define SL_PIDS_ROWS_MAX 64
struct sl_wire_pid {
	uint32_t pid, pad;
	uint64_t used_bytes; /* backing and hidden */
};
/* DENY.flags, since version 2 */
#define SL_DENY_GPU_LOST 1u /* the device is unavailable */
/* GPU_ROW.condition */
#define SL_GPU_DEGRADED 1u
#define SL_GPU_LOST     2u
#define SL_GPU_RESERVE \
	4u /* context_reserve is more than it has, and is not used for it */
/* USE_ROW.flags */
#define SL_USE_NO_SWAP    1u
#define SL_USE_OOM_FIRST  2u
#define SL_USE_OVER_LIMIT 4u
#define SL_USE_STOPPING   8u
#define SL_USE_UNTAKEABLE 16u
#define SL_USE_LOST       32u /* the GPU of this row is lost */
#define SL_USE_OBSERVED   64u /* since version 4: watched only, see SL_RUN_OBSERVE */
/* CLIENT_ROW.flags */
#define SL_CLIENT_STOPPING   1u
#define SL_CLIENT_UNTAKEABLE 2u
#define SL_CLIENT_WAITS      4u
#define SL_CLIENT_IDLE       8u /* idle_ms is meant, and 0 is short */
#define SL_EVENTS_FOLLOW     1u

/* Priorities travel as priority + SL_PRIORITY_BIAS; -1000 <= priority <= 1000. */
#define SL_PRIORITY_BIAS 100000u
#define SL_PRIORITY_MAX  1000

struct sl_msg_head {
	uint32_t type; /* enum sl_msg_type */
	uint32_t version;
};

#define U64(name)         uint64_t name;
#define U32(name)         uint32_t name;
#define ENUM(name, end)   uint32_t name;
#define STR(name, size)   char name[size];
#define BYTES(name, size) uint8_t name[size];
#define SL_MSG(NAME, name, number, since, sender, fields) \
	struct sl_msg_##name {                            \
		struct sl_msg_head head;                  \
		fields                                    \
	};
#include "wire/messages.def"
#undef SL_MSG
#undef U64
#undef U32
#undef ENUM
#undef STR
#undef BYTES

enum sl_msg_type {
#define SL_MSG(NAME, name, number, since, sender, fields) SL_MSG_##NAME = number,
#include "wire/messages.def"
#undef SL_MSG
};

union sl_msg {
	struct sl_msg_head head;
#define SL_MSG(NAME, name, number, since, sender, fields) struct sl_msg_##name name;
#include "wire/messages.def"
#undef SL_MSG
};

/* Who may have sent what is decoded, as a mask. */
#define SL_FROM_CLIENT  1u
#define SL_FROM_CONTROL 2u
#define SL_FROM_DAEMON  4u

enum sl_wire_outcome {
	SL_WIRE_OK = 0,
	SL_WIRE_CLOSED,        /* the other end is gone */
	SL_WIRE_AGAIN,         /* non-blocking, and nothing there (or no room) */
	SL_WIRE_OTHER_VERSION, /* a version that we do not speak; msg->head is valid */
	SL_WIRE_BAD,           /* not a message; err says why; drop the peer */
};

/* "queued", for people and their programs; "?" if there is no such state. */
const char *sl_wire_job_state(uint32_t state);

/* Zeroes *msg and sets its head, with our version; who talks to an older peer lowers it. */
void sl_wire_init(union sl_msg *msg, enum sl_msg_type type);
/* Bytes of a message of this type, 0 if there is none. */
size_t sl_wire_size(uint32_t type);
const char *sl_wire_name(uint32_t type); /* "ASK"; "?" if unknown */
/* The version that brought it; UINT32_MAX if there is none of this type. */
uint32_t sl_wire_since(uint32_t type);

/* Checks bytes received from one of `from`: length, version, type, sender, enums, strings.
 * Copies into *out on OK. Outcomes OK, OTHER_VERSION, BAD. err may be NULL. */
SL_MUST_CHECK int sl_wire_decode(const void *data, size_t size, unsigned int from,
	union sl_msg *out, struct sl_error *err);

/* Sends one message. Outcomes OK, CLOSED, AGAIN; negative errno otherwise. Never raises SIGPIPE.
 * EINTR is retried. */
SL_MUST_CHECK int sl_wire_send(int fd, const union sl_msg *msg);
/* Receives one message. Outcomes OK, CLOSED, AGAIN, OTHER_VERSION, BAD; negative errno otherwise.
 * Descriptors that come along are dropped by the kernel. */
SL_MUST_CHECK int sl_wire_recv(
	int fd, unsigned int from, union sl_msg *out, struct sl_error *err);

/* Makes the answer to a CHALLENGE. */
void sl_wire_proof(union sl_msg *out, const union sl_msg *challenge);

/* Descriptors that came along, close-on-exec. Whoever has them closes them. Room for as many as
 * the kernel lets anybody send: those without room it would close itself, in the receiver's
 * time, and the last reference of a stranger's socket may take as long as the stranger likes. */
#define SL_WIRE_FDS_ROOM 253
struct sl_wire_fds {
	uint32_t count;
	pid_t sender; /* of the message, where the kernel names it (SO_PASSCRED); else 0 */
	bool missing; /* there were more, and the process may have no more descriptors */
	int fd[SL_WIRE_FDS_ROOM];
};

/* Do descriptors go with it? */
bool sl_wire_carries(uint32_t type);
/* Room for the control data of a message with descriptors. */
union sl_wire_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(SL_WIRE_FDS_MAX * sizeof(int))];
};
/* Puts count descriptors (at most SL_WIRE_FDS_MAX) into header, for sendmsg(2). */
void sl_wire_attach(struct msghdr *header, union sl_wire_control *control, const int *fds,
	uint32_t count);
/* As sl_wire_send, with descriptors, which stay the caller's. Also -ETOOMANYREFS: too many of
 * this user are on their way; again in a while. */
SL_MUST_CHECK int sl_wire_send_fds(
	int fd, const union sl_msg *msg, const int *fds, uint32_t count);
/* As sl_wire_recv. *fds is valid, and the caller's, in every case. A message that descriptors go
 * with says how many: another number than that, or none where some must be, is SL_WIRE_BAD
 * (fewer because of our own limit is OK, with fds->missing). What came with any other message,
 * or with a bad one, is there to be closed. */
SL_MUST_CHECK int sl_wire_recv_fds(int fd, unsigned int from, union sl_msg *out,
	struct sl_wire_fds *fds, struct sl_error *err);
/* Do descriptors come with the next message? Takes nothing, and touches none of them. */
SL_MUST_CHECK bool sl_wire_brings_fds(int fd);
/* Closes what is left. */
void sl_wire_fds_close(struct sl_wire_fds *fds);

/* Copies text, cut at a character boundary to size - 1 bytes, rest zeroed. */
void sl_wire_str(char *dest, size_t size, const char *text);

/* Connects a SOCK_SEQPACKET | SOCK_CLOEXEC socket to path. Returns the descriptor or negative
 * errno; err (may be NULL) names the path and the remedy. */
SL_MUST_CHECK int sl_wire_connect(const char *path, struct sl_error *err);
/* The same without waiting, and with SOCK_NONBLOCK. -EAGAIN: the daemon takes no connections now,
 * as one that is stopped. */
SL_MUST_CHECK int sl_wire_connect_now(const char *path, struct sl_error *err);

/* 32 lower-case hex digits and terminator; and back (false if text is not that). */
void sl_wire_token_format(const uint8_t token[SL_WIRE_TOKEN_BYTES], char text[33]);
SL_MUST_CHECK bool sl_wire_token_parse(
	const char *text, uint8_t token[SL_WIRE_TOKEN_BYTES]);
/* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" and terminator; and back. */
void sl_wire_uuid_format(const uint8_t uuid[SL_WIRE_UUID_BYTES], char text[41]);
SL_MUST_CHECK bool sl_wire_uuid_parse(const char *text, uint8_t uuid[SL_WIRE_UUID_BYTES]);

#endif
