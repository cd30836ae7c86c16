/*
 * facts-checkpoint - one process locks, checkpoints, restores and unlocks another
 *
 * The target is a child that was forked before cuInit. It makes its things, and then does one step
 * for each byte that it is sent: it uses them all, or makes more, and answers with a report.
 */
#include "contract.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANUAL "driver API manual"
#define GUIDE  "cuda-checkpoint and what others found with it"

#define BYTES (64ul << 20)

struct target {
	pid_t pid;
	int in, out; /* to it, and from it */
};

/* What a target says of itself. */
struct report {
	char well; /* '1' */
	CUuuid uuid;
	char bus[16];
	CUdeviceptr at;
	CUresult error, pinned; /* pinned: what cuMemHostGetFlags says */
};

enum kind { PLAIN, MANAGED, SHARED, ENDLESS, NARROW };
enum { USE = 'u', MORE = 'm' };

/* --- the target --- */

static CUdeviceptr block, chunk;
static CUmemGenericAllocationHandle handle;
static CUstream stream;
static uint32_t steps;
static char registered[1 << 16] __attribute__((aligned(4096)));

static void make_things(enum kind kind)
{
	uint32_t value = 1;
	void *args[] = {&block, &value};

	contract_context();
	block = contract_alloc(BYTES);
	handle = contract_handle(contract_grain());
	chunk = contract_reserve(contract_grain());
	OK(cuMemMap, chunk, contract_grain(), 0, handle, 0);
	contract_allow(chunk, contract_grain());
	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	OK(cuMemsetD32_v2, block, 7, BYTES / 4);
	OK(cuMemsetD32_v2, chunk, 11, 4);
	/* The stream does not wait for these by itself. */
	OK(cuCtxSynchronize);
	contract_step(stream, block, 1, 0);
	OK(cuStreamSynchronize, stream);
	OK(cuMemHostRegister_v2, registered, sizeof(registered), 0);
	if (kind == MANAGED)
		OK(cuMemAllocManaged, &chunk, 4096, CU_MEM_ATTACH_GLOBAL);
	if (kind == SHARED) {
		CUmemAllocationProp prop = contract_prop();
		int fd = -1;

		prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		OK(cuMemCreate, &handle, contract_grain(), &prop, 0);
		OK(cuMemExportToShareableHandle, &fd, handle,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	}
	if (kind == ENDLESS) {
		OK(cuMemsetD32_v2, block, 0, 1);
		contract_is(CUDA_SUCCESS,
			contract_launch(contract_kernel("prog_wait"), NULL, args),
			"prog_wait", __FILE__, __LINE__);
	}
}

static struct report use_things(void)
{
	struct report r = {.at = block};
	unsigned int flags;

	r.pinned = CU(cuMemHostGetFlags)(&flags, registered);
	r.error = CU(cuMemsetD32_v2)(chunk + 64, 13, 1);
	if (r.error != CUDA_SUCCESS)
		return r;
	contract_step(stream, block, 1, 1);
	OK(cuStreamSynchronize, stream);
	steps++;
	r.well = contract_read(block) == 7 + steps &&
				 contract_read(block + BYTES - 4) == 7 &&
				 contract_read(chunk) == 11 &&
				 contract_read(chunk + 64) == 13
			 ? '1'
			 : '0';
	OK(cuDeviceGetUuid, &r.uuid, 0);
	OK(cuDeviceGetPCIBusId, r.bus, sizeof(r.bus), 0);
	return r;
}

/* Of the devices that the mover sees, the first alone. */
static void see_less(void)
{
	const char *all = getenv("CUDA_VISIBLE_DEVICES");
	char first[64];

	(void)snprintf(first, sizeof(first), "%.*s", all ? (int)strcspn(all, ",") : 1,
		all ? all : "0");
	setenv("CUDA_VISIBLE_DEVICES", first, 1);
}

static struct report make_more(void)
{
	struct report r = {.well = '1'};

	(void)contract_handle(BYTES);
	return r;
}

static void be_target(enum kind kind, int in, int out)
{
	char go;

	if (kind == NARROW)
		see_less();
	make_things(kind);
	if (write(out, "r", 1) != 1)
		_exit(2);
	while (read(in, &go, 1) == 1) {
		struct report r = go == MORE ? make_more() : use_things();

		if (write(out, &r, sizeof(r)) != (ssize_t)sizeof(r))
			_exit(2);
	}
	_exit(0);
}

/* --- the mover --- */

static struct target target_new(enum kind kind)
{
	struct target t;
	int to[2], from[2];
	char ready;

	if (pipe(to) < 0 || pipe(from) < 0)
		contract_skip("no pipe");
	t.pid = fork();
	if (t.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		close(from[0]);
		be_target(kind, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	t.in = to[1];
	t.out = from[0];
	HOLDS(read(t.out, &ready, 1), ==, 1);
	OK(cuInit, 0);
	return t;
}

static void ask_for(const struct target *t, char what)
{
	HOLDS(write(t->in, &what, 1), ==, 1);
}

static void ask(const struct target *t)
{
	ask_for(t, USE);
}

static struct report answer(const struct target *t)
{
	struct report r;

	HOLDS(read(t->out, &r, sizeof(r)), ==, sizeof(r));
	return r;
}

static struct report use(const struct target *t)
{
	ask(t);
	return answer(t);
}

/* Before anything was asked of it. */
static struct report use_first(const struct target *t)
{
	struct report r = use(t);

	HOLDS(r.well, ==, '1');
	return r;
}

static void target_end(const struct target *t)
{
	close(t->in);
	close(t->out);
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
}

static CUprocessState state_of(const struct target *t)
{
	CUprocessState state = (CUprocessState)-1;

	OK(cuCheckpointProcessGetState, t->pid, &state);
	return state;
}

static void lock(const struct target *t)
{
	CUcheckpointLockArgs args = {.timeoutMs = 10000};

	OK(cuCheckpointProcessLock, t->pid, &args);
}

static void send_away(const struct target *t)
{
	lock(t);
	OK(cuCheckpointProcessCheckpoint, t->pid, NULL);
}

static void bring_back(const struct target *t)
{
	OK(cuCheckpointProcessRestore, t->pid, NULL);
	OK(cuCheckpointProcessUnlock, t->pid, NULL);
}

FACT(checkpoint_states, MANUAL, SAME,
	"a process is locked, checkpointed, restored and unlocked, in this order only")
{
	struct target t = target_new(PLAIN);

	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_RUNNING);
	IS(ERROR_ILLEGAL_STATE, cuCheckpointProcessCheckpoint, t.pid, NULL);
	IS(ERROR_ILLEGAL_STATE, cuCheckpointProcessUnlock, t.pid, NULL);
	lock(&t);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_LOCKED);
	IS(ERROR_ILLEGAL_STATE, cuCheckpointProcessLock, t.pid, NULL);
	IS(ERROR_ILLEGAL_STATE, cuCheckpointProcessRestore, t.pid, NULL);
	OK(cuCheckpointProcessCheckpoint, t.pid, NULL);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_CHECKPOINTED);
	IS(ERROR_ILLEGAL_STATE, cuCheckpointProcessUnlock, t.pid, NULL);
	OK(cuCheckpointProcessRestore, t.pid, NULL);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_LOCKED);
	OK(cuCheckpointProcessUnlock, t.pid, NULL);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_RUNNING);
	target_end(&t);
}

FACT(checkpoint_contents, MANUAL, SAME,
	"memory, addresses, streams and kernels are the same after a restore")
{
	struct target t = target_new(PLAIN);
	struct report before = use_first(&t), after;

	for (int i = 0; i < 3; i++) {
		send_away(&t);
		bring_back(&t);
		after = use(&t);
		HOLDS(after.well, ==, '1');
		HOLDS(after.at, ==, before.at);
		HOLDS(memcmp(&after.uuid, &before.uuid, sizeof(before.uuid)), ==, 0);
	}
	target_end(&t);
}

FACT(checkpoint_pins, GUIDE, SAME,
	"host memory that was registered is so after a restore")
{
	struct target t = target_new(PLAIN);

	HOLDS(use_first(&t).pinned, ==, CUDA_SUCCESS);
	send_away(&t);
	bring_back(&t);
	HOLDS(use(&t).pinned, ==, CUDA_SUCCESS);
	target_end(&t);
}

FACT(checkpoint_frees, MANUAL, NATIVE_ONLY,
	"a checkpointed process has nothing on the GPU, and has it again when restored")
{
	struct target t = target_new(PLAIN);
	size_t there, away;

	contract_context();
	there = contract_free_bytes();
	send_away(&t);
	away = contract_free_bytes();
	HOLDS(away, >=, there + BYTES);
	bring_back(&t);
	HOLDS(contract_free_bytes(), <=, away - BYTES);
	target_end(&t);
}

FACT(checkpoint_blocks, MANUAL, SAME,
	"calls of a locked process wait until it is unlocked")
{
	struct target t = target_new(PLAIN);
	uint64_t since;

	send_away(&t);
	since = contract_now_ms();
	ask(&t);
	contract_sleep_ms(300);
	bring_back(&t);
	HOLDS(answer(&t).well, ==, '1');
	HOLDS(contract_now_ms() - since, >=, 300);
	target_end(&t);
}

FACT(checkpoint_lock_timeout, MANUAL, SAME,
	"a lock with a time limit fails with NOT_READY while work runs, and the process "
	"goes on")
{
	struct target t = target_new(ENDLESS);
	CUcheckpointLockArgs args = {.timeoutMs = 200};

	IS(ERROR_NOT_READY, cuCheckpointProcessLock, t.pid, &args);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_RUNNING);
	target_end(&t);
}

FACT(checkpoint_no_process, MANUAL, SAME, "a pid without CUDA is an invalid value")
{
	CUprocessState state;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	OK(cuInit, 0);
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessGetState, pid, &state);
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessLock, pid, NULL);
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessGetState, pid, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

FACT(checkpoint_thread, MANUAL, SAME, "the restore thread is a thread of the process")
{
	struct target t = target_new(PLAIN);
	char path[64];
	int tid = 0;

	OK(cuCheckpointProcessGetRestoreThreadId, t.pid, &tid);
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d", t.pid, tid);
	HOLDS(access(path, F_OK), ==, 0);
	target_end(&t);
}

FACT(checkpoint_own, GUIDE, SAME, "a process may checkpoint itself")
{
	CUdeviceptr at;
	CUcheckpointLockArgs args = {.timeoutMs = 10000};

	contract_context();
	at = contract_alloc(BYTES);
	OK(cuMemsetD32_v2, at, 5, BYTES / 4);
	OK(cuCtxSynchronize);
	OK(cuCheckpointProcessLock, getpid(), &args);
	OK(cuCheckpointProcessCheckpoint, getpid(), NULL);
	OK(cuCheckpointProcessRestore, getpid(), NULL);
	OK(cuCheckpointProcessUnlock, getpid(), NULL);
	HOLDS(contract_read(at + 4096), ==, 5);
}

FACT(checkpoint_managed, GUIDE, NATIVE_ONLY,
	"a process with managed memory cannot be checkpointed")
{
	struct target t = target_new(MANAGED);

	lock(&t);
	FAILS(cuCheckpointProcessCheckpoint, t.pid, NULL);
	target_end(&t);
}

FACT(checkpoint_shared, GUIDE, NATIVE_ONLY,
	"a process with exported memory cannot be checkpointed, and goes on")
{
	struct target t = target_new(SHARED);

	lock(&t);
	FAILS(cuCheckpointProcessCheckpoint, t.pid, NULL);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_LOCKED);
	OK(cuCheckpointProcessUnlock, t.pid, NULL);
	HOLDS(use(&t).well, ==, '1');
	target_end(&t);
}

FACT(checkpoint_target_dies, GUIDE, SAME, "a process that dies while it is away is gone")
{
	struct target t = target_new(PLAIN);
	CUprocessState state;

	send_away(&t);
	target_end(&t);
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessRestore, t.pid, NULL);
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessGetState, t.pid, &state);
}

/* --- other GPUs --- */

/* The pairs that exchange the first two GPUs, and keep the others. alike: these must be of one
 * type, else of two. */
static CUcheckpointRestoreArgs exchange_two(CUcheckpointGpuPair *pair, bool alike)
{
	CUcheckpointRestoreArgs args = {.gpuPairs = pair};
	char name[2][64];
	int count;

	OK(cuDeviceGetCount, &count);
	if (count < 2)
		contract_skip("needs two GPUs");
	memset(name, 0, sizeof(name));
	for (int i = 0; i < count; i++) {
		int other = i < 2 ? 1 - i : i;

		OK(cuDeviceGetUuid_v2, &pair[i].oldUuid, i);
		OK(cuDeviceGetUuid_v2, &pair[i].newUuid, other);
	}
	for (int i = 0; i < 2; i++)
		OK(cuDeviceGetName, name[i], sizeof(name[i]), i);
	if (alike != !strcmp(name[0], name[1]))
		contract_skip("needs two GPUs of one type, or of two");
	args.gpuPairsCount = (unsigned int)count;
	return args;
}

FACT(checkpoint_moves, GUIDE, SAME,
	"a process is restored on another GPU: its UUID is the new one, its bus id the "
	"old one")
{
	struct target t = target_new(PLAIN);
	CUcheckpointGpuPair pair[64];
	CUcheckpointRestoreArgs args = exchange_two(pair, true);
	struct report before = use_first(&t), after;

	send_away(&t);
	OK(cuCheckpointProcessRestore, t.pid, &args);
	OK(cuCheckpointProcessUnlock, t.pid, NULL);
	after = use(&t);
	HOLDS(after.well, ==, '1');
	HOLDS(after.at, ==, before.at);
	HOLDS(memcmp(&after.uuid, &pair[0].newUuid, sizeof(after.uuid)), ==, 0);
	HOLDS(strcmp(after.bus, before.bus), ==, 0);
	/* And back. */
	send_away(&t);
	OK(cuCheckpointProcessRestore, t.pid, &args);
	OK(cuCheckpointProcessUnlock, t.pid, NULL);
	after = use(&t);
	HOLDS(after.well, ==, '1');
	HOLDS(memcmp(&after.uuid, &before.uuid, sizeof(after.uuid)), ==, 0);
	target_end(&t);
}

FACT(checkpoint_other_type, GUIDE, SAME,
	"a process is not restored on a GPU of another type; nothing happens")
{
	struct target t = target_new(PLAIN);
	CUcheckpointGpuPair pair[64];
	CUcheckpointRestoreArgs args = exchange_two(pair, false);

	send_away(&t);
	FAILS(cuCheckpointProcessRestore, t.pid, &args);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_CHECKPOINTED);
	bring_back(&t);
	HOLDS(use(&t).well, ==, '1');
	target_end(&t);
}

FACT(checkpoint_names_all, GUIDE, SAME,
	"a list of GPUs must name all, once each; else nothing happens")
{
	struct target t = target_new(PLAIN);
	CUcheckpointGpuPair pair[64];
	CUcheckpointRestoreArgs args = exchange_two(pair, true), bad = args;

	send_away(&t);
	bad.gpuPairsCount = 1;
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessRestore, t.pid, &bad);
	bad = args;
	pair[1].newUuid = pair[0].newUuid;
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessRestore, t.pid, &bad);
	memset(&pair[1].newUuid, 0x5a, sizeof(pair[1].newUuid));
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessRestore, t.pid, &bad);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_CHECKPOINTED);
	bring_back(&t);
	HOLDS(use(&t).well, ==, '1');
	target_end(&t);
}

FACT(checkpoint_names_hidden, GUIDE, SAME,
	"a list of GPUs must also name those that CUDA_VISIBLE_DEVICES hides, and the "
	"process "
	"may get them")
{
	struct target t = target_new(NARROW);
	CUcheckpointGpuPair pair[64];
	CUcheckpointRestoreArgs args = exchange_two(pair, true), bad = args;
	struct report before = use_first(&t), after;

	send_away(&t);
	bad.gpuPairsCount = 1;
	IS(ERROR_INVALID_VALUE, cuCheckpointProcessRestore, t.pid, &bad);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_CHECKPOINTED);
	OK(cuCheckpointProcessRestore, t.pid, &args);
	OK(cuCheckpointProcessUnlock, t.pid, NULL);
	after = use(&t);
	HOLDS(after.well, ==, '1');
	HOLDS(memcmp(&after.uuid, &pair[0].newUuid, sizeof(after.uuid)), ==, 0);
	HOLDS(strcmp(after.bus, before.bus), ==, 0);
	target_end(&t);
}

FACT(checkpoint_makes_anew, GUIDE, NATIVE_ONLY,
	"what a process asks for after a move is made on its new GPU")
{
	struct target t = target_new(PLAIN);
	CUcheckpointGpuPair pair[64];
	CUcheckpointRestoreArgs args = exchange_two(pair, true);
	struct report first = use_first(&t);
	size_t here, there;
	CUcontext ctx;

	send_away(&t);
	OK(cuCheckpointProcessRestore, t.pid, &args);
	OK(cuCheckpointProcessUnlock, t.pid, NULL);
	HOLDS(use(&t).well, ==, first.well);
	contract_context();
	here = contract_free_bytes();
	OK(cuDevicePrimaryCtxRetain, &ctx, 1);
	OK(cuCtxSetCurrent, ctx);
	there = contract_free_bytes();
	ask_for(&t, MORE);
	HOLDS(answer(&t).well, ==, '1');
	HOLDS(contract_free_bytes(), <=, there - BYTES);
	contract_context();
	HOLDS(contract_free_bytes(), >=, here);
	target_end(&t);
}

FACT(checkpoint_out_of_memory, GUIDE, NATIVE_ONLY,
	"a restore that meets out-of-memory fails for good, and so do the process's "
	"calls")
{
	struct target t = target_new(PLAIN);
	size_t step = 1ul << 30;
	CUdeviceptr at;

	send_away(&t);
	contract_context();
	for (; step >= 4096; step /= 2)
		while (CU(cuMemAlloc_v2)(&at, step) == CUDA_SUCCESS)
			;
	FAILS(cuCheckpointProcessRestore, t.pid, NULL);
	HOLDS(state_of(&t), ==, CU_PROCESS_STATE_FAILED);
	IS(ERROR_ILLEGAL_STATE, cuCheckpointProcessRestore, t.pid, NULL);
	HOLDS(use(&t).error, !=, CUDA_SUCCESS);
	target_end(&t);
}
