/*
 * gpu - figures, health and events of the GPUs
 */
#include "softgpu/server/internal.h"

#include "base/cuda_types.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sl_server *const s = &sl_server;

/* Figures ------------------------------------------------------------------------------------ */

static void figures_row(struct sl_sg_figures *f, const struct client *c, uint32_t device)
{
	uint64_t used = sl_ledger_used_by(&s->ledger, &c->holder, device);

	if (f->process_count == SL_SG_PROCS_MAX ||
		(!used && c->holder.contexts[device] <= 0))
		return;
	/* A process may have several connections (a forked child's own, say), but gets one row. */
	for (uint32_t i = 0; i < f->process_count; i++)
		if (f->process[i].pid == c->pid) {
			f->process[i].used_bytes += used;
			f->process[i].busy_pct += c->busy_pct[device];
			return;
		}
	f->process[f->process_count++] =
		(struct sl_sg_process){c->pid, c->busy_pct[device], used};
}

void sl_server_figures_take(uint64_t now)
{
	s->figures_ns = now;
	for (uint32_t i = 0; i < s->ledger.config.gpus; i++) {
		struct sl_sg_figures *f = &s->figures[i];
		struct sl_link *link;

		f->total_bytes = s->ledger.config.memory_bytes;
		f->reserved_bytes = s->ledger.config.reserve_bytes;
		f->used_bytes = sl_ledger_used(&s->ledger, i);
		f->busy_pct = s->busy_pct[i];
		f->process_count = 0;
		for (link = s->clients.next; link != &s->clients; link = link->next)
			figures_row(f, SL_LIST_ENTRY(link, struct client, link), i);
		for (link = s->dying.next; link != &s->dying; link = link->next)
			figures_row(f, SL_LIST_ENTRY(link, struct client, link), i);
	}
}

static void client_busy_step(struct client *c, uint64_t span)
{
	for (unsigned i = 0; i < s->ledger.config.gpus; i++) {
		c->busy_pct[i] = (uint32_t)sl_min_u64(100, c->busy_ns[i] * 100 / span);
		c->busy_ns[i] = 0;
	}
}

/* Utilisation is the part of the last whole second in which work ran. */
void sl_server_busy_step(uint64_t now)
{
	uint64_t span = now - s->busy_since_ns;

	if (span < 1000000000u)
		return;
	for (unsigned i = 0; i < s->ledger.config.gpus; i++) {
		s->busy_pct[i] = (uint32_t)sl_min_u64(100, s->busy_ns[i] * 100 / span);
		s->busy_ns[i] = 0;
	}
	sl_list_foreach (link, &s->clients)
		client_busy_step(SL_LIST_ENTRY(link, struct client, link), span);
	s->busy_since_ns = now;
}

/* The health of a GPU ------------------------------------------------------------------------- */

static bool is_lost(uint32_t device)
{
	return s->board->generation[device] & 1;
}

/* Wakes all processes that wait for events. */
static void post_event(uint32_t device, uint32_t xid)
{
	struct sl_sg_board *b = s->board;
	uint32_t n = b->event_count;

	b->event[n % SL_SG_EVENTS_MAX] = (struct sl_sg_event){device, xid};
	__atomic_store_n(&b->event_count, n + 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &b->event_count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void sl_server_companion_kill(const struct companion *o)
{
	syscall(SYS_pidfd_send_signal, o->watch.fd, SIGKILL, NULL, 0);
}

/* Ends all kernels there at once; clients find the error when they wait. */
static void stop_kernels(uint32_t device)
{
	sl_list_foreach (link, &s->clients) {
		struct client *c = SL_LIST_ENTRY(link, struct client, link);

		sl_list_foreach (each, &c->companions) {
			struct companion *o = SL_LIST_ENTRY(each, struct companion, link);

			if (o->device == device)
				sl_server_companion_kill(o);
		}
	}
}

/* A CUresult: an error if the GPU is in that state already. */
int sl_server_health(const struct sl_sg_request *q)
{
	uint32_t *generation = &s->board->generation[q->device];

	if (q->op != SL_SG_XID) {
		if (is_lost(q->device) == (q->op == SL_SG_LOSE))
			return CUDA_ERROR_INVALID_VALUE;
		__atomic_store_n(generation, *generation + 1, __ATOMIC_RELEASE);
	}
	if (q->op == SL_SG_LOSE)
		stop_kernels(q->device);
	if (q->op != SL_SG_REVIVE)
		post_event(q->device, (uint32_t)q->value);
	return CUDA_SUCCESS;
}
