/*
 * wire - the messages between sluiced and its peers
 *
 * One list (messages.def) gives structs, numbers, names, sizes and checks. A message is a value;
 * nothing is allocated. Thread-safe as sendmsg(2) and recvmsg(2) are: a datagram is never split, so
 * several threads may send on one socket. libc only (glibc 2.17).
 */
#ifndef SL_WIRE_WIRE_H
#define SL_WIRE_WIRE_H

#include "base/amount.h"
#include "base/error.h"

#include <sys/socket.h>
#include <sys/types.h>

/* Both ends must speak the same version. Raise it with every change of what a message means. */
#define SL_PROTOCOL_VERSION 1

#define SL_WIRE_TOKEN_BYTES 16
#define SL_WIRE_UUID_BYTES  16

enum sl_role { SL_ROLE_CLIENT = 0, SL_ROLE_CONTROL, SL_ROLES };

enum sl_reject {               /* for what each means to a program see runtime */
	SL_REJECT_VERSION = 0, /* another protocol version */
	SL_REJECT_WORKLOAD, /* no workload of that token, nor one among the ancestors */
	SL_REJECT_USER,     /* the workload belongs to another user */
	SL_REJECT_PROTOCOL, /* a malformed or unexpected message */
	SL_REJECT_FULL,     /* no descriptors or slots left; try again */
	SL_REJECT_DENIED,   /* this peer may not do that */
	SL_REJECTS
};

enum sl_list_what {
	SL_LIST_USES = 0,
	SL_LIST_GPUS,
	SL_LIST_STATUS,
	SL_LIST_CLIENTS,
	SL_LIST_POOL,
	SL_LIST_PROJECTS,
	SL_LIST_JOBS,
	SL_LIST_QUEUE,
	SL_LIST_PARTS,
	SL_LIST_RESOURCES,
	SL_LIST_ENTRIES,
	SL_LISTS
};
enum sl_state {
	SL_STATE_RESERVED = 0,
	SL_STATE_BOUND,
	SL_STATE_WAITING,
	SL_STATE_GONE,
	SL_STATES
};

/* State of a whole job. */
enum sl_job_state {
	SL_JOB_QUEUED = 0, /* no task of it runs */
	SL_JOB_RUNNING,    /* some do */
	SL_JOB_PARKED,     /* none runs, and some are parked on the host */
	SL_JOB_STOPPING,   /* a stop was asked for */
	SL_JOB_DONE,       /* all tasks ended with 0 */
	SL_JOB_FAILED,     /* a task failed, with no retry left */
	SL_JOB_STOPPED,    /* it ended because of a stop */
	SL_JOB_STATES
};
/* Flags of SUBMIT and JOB_ROW, beside SL_RUN_*; the last two also of RUN. */
#define SL_SUBMIT_PREEMPTIBLE 0x100u
#define SL_SUBMIT_TERMINATES \
	0x200u               /* reclaim ends and requeues it; without: reclaim parks it */
#define SL_SUBMIT_TRY 0x400u /* only reports what would happen */
/* warm_after_ms is 0 by choice; without, 0 stands for the daemon's default */
#define SL_SUBMIT_NEVER_WARM 0x800u
/* idle_grace_ms is set; without, the daemon's default holds */
#define SL_SUBMIT_GRACE 0x1000u
/* As SL_SUBMIT_NEVER_WARM, of detach_after_ms */
#define SL_SUBMIT_NEVER_DETACH 0x2000u
/* Job numbers with this bit are `sluice run`s that wait or were preempted; the other bits are the
 * workload's number. */
#define SL_JOB_FOREGROUND (1ull << 63)
/* exit_status of a job whose end was not observed. */
#define SL_JOB_LOST        UINT32_MAX
#define SL_JOB_TASKS_MAX   1024
#define SL_JOB_RETRIES_MAX 100
/* Longest --preempt-delay: 30 days, in milliseconds. */
#define SL_JOB_DELAY_MS_MAX 2592000000u

/* Flags of PROJECT_PUT and PROJECT_ROW. */
#define SL_PROJECT_NO_SWAP 1u
/* PROJECT_ROW: stored projects could not be read, so the list is incomplete. */
#define SL_PROJECT_UNREAD 2u

/* Fields of HISTORY: what is asked for, the subject of one row, and the format. */
enum sl_history_what {
	SL_HISTORY_USAGE = 0, /* figures by `by` */
	SL_HISTORY_SERIES,    /* one workload over time, with its events */
	SL_HISTORY_EVENTS,    /* stored events; name: only those of this workload */
	SL_HISTORY_ADVICE,    /* requests and limits that would suffice, by program */
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

/* As enum sl_probe and enum sl_client_condition of the policy; the daemon maps them. */
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

/* As enum sl_compute_order of the policy. */
enum sl_wire_meter {
	SL_WIRE_METER_OFF = 0,
	SL_WIRE_METER_SHUT,
	SL_WIRE_METER_SLICE,
	SL_WIRE_METER_OPEN,
	SL_WIRE_METERS
};

/* Result of an IPC_OFFER or IPC_OPEN. */
enum sl_wire_ipc_reason {
	SL_IPC_OK = 0,
	SL_IPC_UNKNOWN, /* no such offer, or none for this user */
	SL_IPC_UNSEEN,  /* the memory is on a GPU that the opener does not have */
	SL_IPC_FULL,    /* the daemon has no slot or no descriptors left */
	SL_IPC_BAD,     /* sizes that contradict each other, or another client's key */
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
	SL_WIRE_DETACHED,
	SL_WIRE_RESIDENCIES
};
/* USE_ROW.endless: why the longest wait has no bound. */
enum sl_wire_endless {
	SL_WIRE_ENDLESS_UNSAID = 0, /* it has a bound */
	SL_WIRE_ENDLESS_STAYS,
	SL_WIRE_ENDLESS_HOST,
	SL_WIRE_ENDLESS_POOL,
	SL_WIRE_ENDLESS_BOUND,
	SL_WIRE_ENDLESS_WHOLE,
	SL_WIRE_ENDLESS_REQUESTS
};
/* Parked until an explicit resume, whether or not all of its memory has left. */
static inline bool sl_wire_is_parked(uint32_t residency)
{
	return residency == SL_WIRE_PARKED || residency == SL_WIRE_PARKING;
}
/* Its request no longer counts. */
static inline bool sl_wire_gave_up_request(uint32_t residency)
{
	return sl_wire_is_parked(residency) || residency == SL_WIRE_DETACHED ||
	       residency == SL_WIRE_RESUMING;
}
/* STORE.flags: the file has huge pages. */
#define SL_STORE_HUGE 1u
/* FREED.flags: the bytes were on the host. */
#define SL_FREED_EVICTED 1u

/* What the daemon needs for projects and jobs (the supervisor's program, the database, the folder),
 * the history, the page and the metrics. */
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
	SL_HEALTH_BROKEN, /* unusable */
	SL_HEALTHS
};
#define SL_QUEUE_ROWS 5

#define SL_HELLO_FORKED    1u /* the parent of this process is a client too */
#define SL_RUN_VISIBLE_SET 1u
#define SL_RUN_NO_SWAP     2u
#define SL_RUN_OOM_FIRST   4u
#define SL_RUN_OOM_WAIT    8u /* wait, even if the daemon's default is oom_first */
/* Its memory may be registered with other devices; SL_RUN_NO_SWAP is set, too, and cannot be
 * cleared. */
#define SL_RUN_RDMA 16u
#define SL_RUN_ALL  31u
/* Its own chain of resolvers (policy/words/chain.h), 0: the node's. Also in the flags of SET,
 * USE_ROW and JOB_ROW. */
#define SL_RUN_CHAIN       0xffff0000u
#define SL_RUN_CHAIN_SHIFT 16
/* RUN only: if it cannot start at once it is queued, and RUN_WAITS tells why. */
#define SL_RUN_WAIT 32u
/* RUN only: no limit holds; its use is only measured, for advice. */
#define SL_RUN_OBSERVE 64u
/* Of ENTRY_ADD: its containers may have the device nodes of other GPUs, so that it can go there. */
#define SL_ENTRY_REACHES 128u
/* WELCOME.flags: allocate memory so that it can be registered. */
#define SL_WELCOME_RDMA 1u
/* ASK.flags: the new bytes cannot be evicted, so they may not use the request of another
 * workload. */
#define SL_ASK_HELD 1u
/* With SL_ASK_HELD: the bytes exist and are charged; this asks only that they may become held.
 * Answered without a wait (except while the daemon starts); COMMIT says that they are held. */
#define SL_ASK_THERE 2u
/* Announces the first context of the process on that GPU; bytes is 1, without meaning. COMMIT of 0
 * bytes follows once the context is made and measured, or could not be made. */
#define SL_ASK_CONTEXT 4u
/* Only if free memory serves it at once; otherwise it is denied at once, as if it had been
 * cancelled. */
#define SL_ASK_NOW 8u
/* Most descriptors that one message carries. */
#define SL_WIRE_FDS_MAX 32
/* PIDS_ROWS: flags and rows. */
#define SL_PIDS_LAST 1u
/* The client's pid namespace is the daemon's, so NVML's pids are valid for it. */
#define SL_PIDS_SAME     2u
#define SL_PIDS_ROWS_MAX 64
struct sl_wire_pid {
	uint32_t pid, pad;
	uint64_t used_bytes; /* backing and hidden */
};
/* DENY.flags. */
#define SL_DENY_GPU_LOST 1u /* the device is unavailable */
/* GPU_ROW.condition */
#define SL_GPU_DEGRADED 1u
#define SL_GPU_LOST     2u
#define SL_GPU_RESERVE \
	4u /* context_reserve exceeds the reserve of the GPU and is ignored there */
#define SL_GPU_FIXED 8u /* nothing leaves it for the host (gpu_groups) */
/* USE_ROW.flags */
#define SL_USE_NO_SWAP    1u
#define SL_USE_OOM_FIRST  2u
#define SL_USE_OVER_LIMIT 4u
#define SL_USE_STOPPING   8u
#define SL_USE_UNTAKEABLE 16u
#define SL_USE_LOST       32u  /* the GPU of this row is lost */
#define SL_USE_OBSERVED   64u  /* only measured, see SL_RUN_OBSERVE */
#define SL_USE_FIXED      128u /* its memory is never moved, because of its GPUs */
#define SL_USE_MOVING     256u /* it leaves its GPUs for others, or to come back to them */
/* CLIENT_ROW.flags */
#define SL_CLIENT_STOPPING   1u
#define SL_CLIENT_UNTAKEABLE 2u
#define SL_CLIENT_WAITS      4u
#define SL_CLIENT_IDLE       8u /* idle_ms is valid, even if 0 */
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
#define SL_MSG(NAME, name, number, sender, fields) \
	struct sl_msg_##name {                     \
		struct sl_msg_head head;           \
		fields                             \
	};
#include "wire/messages.def"
#undef SL_MSG
#undef U64
#undef U32
#undef ENUM
#undef STR
#undef BYTES

enum sl_msg_type {
#define SL_MSG(NAME, name, number, sender, fields) SL_MSG_##NAME = number,
#include "wire/messages.def"
#undef SL_MSG
};

union sl_msg {
	struct sl_msg_head head;
#define SL_MSG(NAME, name, number, sender, fields) struct sl_msg_##name name;
#include "wire/messages.def"
#undef SL_MSG
};

/* Senders that sl_wire_decode accepts, as a mask. */
#define SL_FROM_CLIENT  1u
#define SL_FROM_CONTROL 2u
#define SL_FROM_DAEMON  4u

enum sl_wire_outcome {
	SL_WIRE_OK = 0,
	SL_WIRE_CLOSED, /* the other end is gone */
	SL_WIRE_AGAIN,  /* non-blocking, and no message there (or no space to send) */
	SL_WIRE_OTHER_VERSION, /* msg->head is valid */
	SL_WIRE_BAD,           /* not a message; err says why; drop the peer */
};

/* "queued" and so on, for people and their programs; "?" if there is no such state. */
const char *sl_wire_job_state(uint32_t state);

/* Zeroes *msg and sets its head. */
void sl_wire_init(union sl_msg *msg, enum sl_msg_type type);
/* Size of a message of this type in bytes, 0 if there is none. */
size_t sl_wire_size(uint32_t type);
const char *sl_wire_name(uint32_t type); /* "ASK"; "?" if unknown */

/* Checks the length, version, type, sender, enums and strings of bytes from a sender in the mask
 * `from`. Copies them into *out on OK. Outcomes OK, OTHER_VERSION, BAD. err may be NULL. */
SL_MUST_CHECK int sl_wire_decode(const void *data, size_t size, unsigned int from,
	union sl_msg *out, struct sl_error *err);

/* Sends one message. Outcomes OK, CLOSED, AGAIN; negative errno otherwise. Never raises SIGPIPE.
 * EINTR is retried. */
SL_MUST_CHECK int sl_wire_send(int fd, const union sl_msg *msg);
/* Receives one message. Outcomes OK, CLOSED, AGAIN, OTHER_VERSION, BAD; negative errno otherwise.
 * The kernel drops descriptors that come with it. */
SL_MUST_CHECK int sl_wire_recv(
	int fd, unsigned int from, union sl_msg *out, struct sl_error *err);

/* Makes the answer to a CHALLENGE. */
void sl_wire_proof(union sl_msg *out, const union sl_msg *challenge);

/* Received descriptors, close-on-exec; the receiver closes them. There is room for as many as the
 * kernel lets one message carry. Otherwise the kernel would close the excess during the call, and
 * closing the last reference of a stranger's socket may block for long. */
#define SL_WIRE_FDS_ROOM 253
struct sl_wire_fds {
	uint32_t count;
	pid_t sender; /* of the message, if the kernel names it (SO_PASSCRED); else 0 */
	bool missing; /* some were lost: this process has reached its limit of descriptors */
	int fd[SL_WIRE_FDS_ROOM];
};

/* Can this type carry descriptors? */
bool sl_wire_carries(uint32_t type);
/* Room for the control data of a message with descriptors. */
union sl_wire_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(SL_WIRE_FDS_MAX * sizeof(int))];
};
/* Puts count descriptors (at most SL_WIRE_FDS_MAX) into header, for sendmsg(2). */
void sl_wire_attach(struct msghdr *header, union sl_wire_control *control, const int *fds,
	uint32_t count);
/* As sl_wire_send, with descriptors, which stay the caller's. Also -ETOOMANYREFS: this user has too
 * many descriptors in flight; retry later. */
SL_MUST_CHECK int sl_wire_send_fds(
	int fd, const union sl_msg *msg, const int *fds, uint32_t count);
/* As sl_wire_recv. *fds is valid, and the caller's, in every case. A message that carries
 * descriptors states their number. The result is SL_WIRE_BAD if another number comes, or none where
 * some must come. It is OK, with fds->missing set, if fewer come because of this process's own
 * limit. If a message is bad or may carry no descriptors, those that came with it are in *fds, too,
 * for the caller to close. */
SL_MUST_CHECK int sl_wire_recv_fds(int fd, unsigned int from, union sl_msg *out,
	struct sl_wire_fds *fds, struct sl_error *err);
/* Does the next message bring descriptors? Receives nothing. */
SL_MUST_CHECK bool sl_wire_brings_fds(int fd);
/* Closes every descriptor in *fds. */
void sl_wire_fds_close(struct sl_wire_fds *fds);

/* Copies text, cut at a character boundary to size - 1 bytes, rest zeroed. */
void sl_wire_str(char *dest, size_t size, const char *text);

/* Connects a SOCK_SEQPACKET | SOCK_CLOEXEC socket to path. Returns the descriptor or negative
 * errno; err (may be NULL) names the path and the remedy. */
SL_MUST_CHECK int sl_wire_connect(const char *path, struct sl_error *err);
/* As sl_wire_connect, without blocking, and with SOCK_NONBLOCK. -EAGAIN: the daemon accepts no
 * connections now, for example because it is stopped. */
SL_MUST_CHECK int sl_wire_connect_now(const char *path, struct sl_error *err);

/* 32 lower-case hex digits and terminator; the parser returns false for anything else. */
void sl_wire_token_format(const uint8_t token[SL_WIRE_TOKEN_BYTES], char text[33]);
SL_MUST_CHECK bool sl_wire_token_parse(
	const char *text, uint8_t token[SL_WIRE_TOKEN_BYTES]);
/* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" and terminator; and back. */
void sl_wire_uuid_format(const uint8_t uuid[SL_WIRE_UUID_BYTES], char text[41]);
SL_MUST_CHECK bool sl_wire_uuid_parse(const char *text, uint8_t uuid[SL_WIRE_UUID_BYTES]);

#endif
