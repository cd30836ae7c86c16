/*
 * control - the thread that carries out what a mover asks of this process
 *
 * The server has checked the state: it asks for one thing at a time, in a possible order.
 */
#include "softgpu/driver/driver.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int control = -1;
static sem_t registered;

static CUresult carry_out(const struct sl_sg_request *q)
{
	CUresult r = CUDA_SUCCESS;

	switch (q->op) {
	case SL_SG_LOCK:
		r = sl_gate_close(q->id ? sl_drv_now_ns() + q->id * 1000000u : 0)
			    ? CUDA_SUCCESS
			    : CUDA_ERROR_NOT_READY;
		break;
	case SL_SG_CHECKPOINT: r = sl_space_leave(); break;
	case SL_SG_RESTORE:
		r = sl_space_return(q->id);
		if (r != CUDA_SUCCESS && r != CUDA_ERROR_INVALID_VALUE)
			sl_gate_fail();
		break;
	default: sl_gate_open(); break;
	}
	return r;
}

static void serve(void)
{
	struct sl_sg_request q;

	while (sl_sg_receive(control, &q, sizeof(q), NULL, NULL) == (ssize_t)sizeof(q)) {
		struct sl_sg_reply reply = {.result = carry_out(&q)};

		if (sl_sg_send(control, &reply, sizeof(reply), NULL, 0, NULL, 0) < 0)
			break;
	}
}

static void *begin(void *end)
{
	struct sl_sg_request q = {
		.op = SL_SG_CONTROL, .value = (uint64_t)syscall(SYS_gettid)};
	int server_end = (int)(intptr_t)end;
	struct sl_sg_reply reply;
	CUresult r = sl_link_call(&q, server_end, &reply, NULL, 0, NULL);

	close(server_end);
	sem_post(&registered);
	if (r == CUDA_SUCCESS)
		serve();
	return NULL;
}

void sl_control_start(void)
{
	sigset_t all, before;
	pthread_t thread;
	int ends[2];

	if (!sl_drv.hello.gpus ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	control = ends[0];
	sem_init(&registered, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (pthread_create(&thread, NULL, begin, (void *)(intptr_t)ends[1]) == 0) {
		pthread_detach(thread);
		/* A mover may come as soon as cuInit has returned. */
		while (sem_wait(&registered) != 0)
			;
	} else {
		close(ends[1]);
		close(sl_steal_fd(&control));
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The parent's end would look alive as long as the child lives. */
void sl_control_in_child(void)
{
	if (control >= 0)
		close(sl_steal_fd(&control));
}
