/*
 * signals - signals into threads that are inside the driver, and callbacks that do as they please
 *
 * signals storm MS [restart] [stack]: threads submit and allocate under a thousand signals a second
 * each.
 *
 * signals memory MIB: one allocation that may have to wait, under the same signals.
 *
 * signals callbacks MS [pageable]: callbacks that longjmp within themselves, and that take a lock
 * which a submitting thread holds. pageable: other threads meanwhile wait for these callbacks
 * inside a copy.
 *
 * restart: handlers with SA_RESTART; stack: handlers on a stack of their own. Handlers do only what
 * is safe in a handler, and change errno. No call may fail or hang because of a signal.
 */
#include "prog.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { THREADS = 6, STACK_BYTES = 1 << 16, PELT_US = 1000 };

static CUcontext context;
static CUfunction step;
static pthread_t threads[THREADS];
static uint64_t stop_ms, rounds, signals;
static int stop, wrong, null_fd, handler_flags;

static void on_signal(int signal)
{
	(void)signal;
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
	if (write(null_fd, "x", 1) == 1)
		errno = EINTR;
}

static void is_wrong(const char *what, uint64_t want, uint64_t got)
{
	prog_say("{\"error\":\"%s\",\"want\":%llu,\"got\":%llu}", what,
		(unsigned long long)want, (unsigned long long)got);
	__atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
}

static void own_stack(void)
{
	stack_t stack = {.ss_size = STACK_BYTES};

	stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) != 0)
		exit(PROG_USAGE);
}

static void watch(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = handler_flags};
	struct itimerval often = {{0, PELT_US}, {0, PELT_US}};

	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null_fd < 0 || sigaction(SIGUSR1, &action, NULL) ||
		sigaction(SIGALRM, &action, NULL) || sigaction(SIGPROF, &action, NULL) ||
		setitimer(ITIMER_REAL, &often, NULL) ||
		setitimer(ITIMER_PROF, &often, NULL))
		exit(PROG_USAGE);
}

/* A thousand a second to each thread, whatever it is doing. */
static void *pelt(void *count)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		for (uintptr_t i = 0; i < (uintptr_t)count; i++)
			pthread_kill(threads[i], SIGUSR1);
		usleep(PELT_US);
	}
	return NULL;
}

static void one_round(CUstream stream, uint32_t *seen)
{
	uint32_t one = 1;
	CUdeviceptr word;
	void *args[] = {&word, &one, &one};

	PROG_MUST(cuMemAlloc_v2(&word, 1 << 16));
	PROG_MUST(cuMemsetD32Async(word, 0, 1, stream));
	for (int i = 0; i < 8; i++)
		PROG_MUST(prog_launch(step, 1, stream, args));
	PROG_MUST(cuMemcpyDtoHAsync_v2(seen, word, sizeof(*seen), stream));
	PROG_MUST(cuStreamSynchronize(stream));
	if (*seen != 8)
		is_wrong("steps", 8, *seen);
	PROG_MUST(cuMemFree_v2(word));
	__atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
}

static void *submit(void *arg)
{
	CUstream stream;
	uint32_t seen = 0;

	if (handler_flags & SA_ONSTACK)
		own_stack();
	PROG_MUST(cuCtxSetCurrent(context));
	PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	while (prog_now_ms() < stop_ms && !__atomic_load_n(&wrong, __ATOMIC_RELAXED))
		one_round(stream, &seen);
	PROG_MUST(cuStreamDestroy_v2(stream));
	return arg;
}

static void start(void)
{
	CUmodule module;

	context = prog_context(0);
	module = prog_kernels();
	step = prog_kernel(module, "prog_step");
}

static int storm(uint64_t ms)
{
	pthread_t pelter;

	if (handler_flags & SA_ONSTACK)
		own_stack();
	watch();
	start();
	stop_ms = prog_now_ms() + ms;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, submit, NULL))
			return PROG_USAGE;
	if (pthread_create(&pelter, NULL, pelt, (void *)(uintptr_t)THREADS))
		return PROG_USAGE;
	/* Handles stay good until they are joined, so the pelter goes first. */
	while (prog_now_ms() < stop_ms)
		prog_sleep_ms(10);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(pelter, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return PROG_OK;
}

static int memory(uint64_t mib)
{
	CUdeviceptr at = 0;
	pthread_t pelter;
	CUresult result;
	uint64_t before;

	start();
	watch();
	threads[0] = pthread_self();
	if (pthread_create(&pelter, NULL, pelt, (void *)1))
		return PROG_USAGE;
	prog_say("{\"event\":\"ask\"}");
	before = __atomic_load_n(&signals, __ATOMIC_RELAXED);
	result = cuMemAlloc_v2(&at, mib << 20);
	prog_say("{\"event\":\"got\",\"result\":\"%s\",\"signals_meanwhile\":%llu}",
		prog_error_name(result),
		(unsigned long long)(__atomic_load_n(&signals, __ATOMIC_RELAXED) -
				     before));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(pelter, NULL);
	PROG_MUST(result);
	PROG_MUST(cuMemsetD8_v2(at, 3, mib << 20));
	PROG_MUST(cuMemFree_v2(at));
	return PROG_OK;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t called, jumped;
static bool pageable;

static void CUDA_CB jumps(void *arg)
{
	jmp_buf back;

	(void)arg;
	if (setjmp(back) == 0)
		longjmp(back, 1);
	__atomic_fetch_add(&jumped, 1, __ATOMIC_RELAXED);
}

static void CUDA_CB locks(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	called++;
	pthread_mutex_unlock(&lock);
}

/* The lock is held while more is submitted, perhaps in front of a closed gate. */
static void *submit_locked(void *arg)
{
	uint32_t on_stack = 0, *seen = &on_stack;
	CUstream stream;

	PROG_MUST(cuCtxSetCurrent(context));
	PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (!pageable)
		PROG_MUST(cuMemHostAlloc((void **)&seen, sizeof(*seen), 0));
	while (prog_now_ms() < stop_ms) {
		pthread_mutex_lock(&lock);
		PROG_MUST(cuLaunchHostFunc(stream, locks, NULL));
		PROG_MUST(cuLaunchHostFunc(stream, jumps, NULL));
		pthread_mutex_unlock(&lock);
		one_round(stream, seen);
	}
	if (!pageable)
		PROG_MUST(cuMemFreeHost(seen));
	PROG_MUST(cuStreamDestroy_v2(stream));
	return arg;
}

static int callbacks(uint64_t ms)
{
	start();
	stop_ms = prog_now_ms() + ms;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, submit_locked, NULL))
			return PROG_USAGE;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (called != rounds || jumped != rounds)
		is_wrong("callbacks", rounds, called < jumped ? called : jumped);
	return PROG_OK;
}

int main(int argc, char **argv)
{
	uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	const char *mode = argc > 1 ? argv[1] : "";
	int status = PROG_USAGE;

	for (int i = 3; i < argc; i++) {
		pageable |= strcmp(argv[i], "pageable") == 0;
		handler_flags |= strcmp(argv[i], "stack") == 0 ? SA_ONSTACK : SA_RESTART;
	}
	if (!strcmp(mode, "storm"))
		status = storm(number);
	else if (!strcmp(mode, "memory"))
		status = memory(number);
	else if (!strcmp(mode, "callbacks"))
		status = callbacks(number);
	prog_say("{\"event\":\"end\",\"rounds\":%llu,\"signals\":%llu,\"wrong\":%d}",
		(unsigned long long)rounds, (unsigned long long)signals, wrong);
	return status ? status : wrong ? PROG_WRONG : PROG_OK;
}
