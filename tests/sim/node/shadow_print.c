/*
 * shadow_print - the shadow's books in words, for the reader of a failure
 */
#include "shadow.h"

#include <inttypes.h>

static void print_demand(FILE *out, const struct shadow *s, const struct shadow_demand *d)
{
	fprintf(out,
		"    demand %" PRIu64 " of client %" PRIu64 " (workload %" PRIu64
		"): %" PRIu64 " bytes, %s, %s, waited %" PRIu64 " ms",
		d->order, d->client->id, d->client->workload->id, d->bytes,
		d->entitled ? "entitled" : "burst",
		d->is_void     ? "void"
		: d->granted   ? "granted"
		: d->cancelled ? "cancelled"
			       : "waits",
		(uint64_t)((s->now - d->arrived) / SL_MS));
	if (d->refused_ever)
		fprintf(out, ", refused %" PRIu64 " ms ago%s",
			(uint64_t)((s->now - d->refused_at) / SL_MS),
			d->released_since ? ", memory came back" : "");
	fputc('\n', out);
}

static void print_gpu(FILE *out, const struct shadow *s, uint32_t gpu)
{
	const struct shadow_gpu *g = &s->gpu[gpu];

	fprintf(out, "  GPU %u: %" PRIu64 " can be shared, %" PRIu64 " free%s%s\n", gpu,
		shadow_shareable(s, gpu), shadow_free(s, gpu),
		g->degraded ? ", degraded" : "", g->lost ? ", lost" : "");
	for (uint32_t i = 0; i < SHADOW_WORKLOADS; i++) {
		const struct shadow_workload *w = &s->workload[i];
		uint64_t use = w->used ? shadow_use(s, w, gpu) : 0;

		if (w->used && ((w->mask >> gpu & 1) || use))
			fprintf(out,
				"    workload %" PRIu64 ": priority %d, request %" PRIu64
				", limit %" PRIu64 ", uses %" PRIu64 ", flags %x%s%s\n",
				w->id, w->priority, w->request, w->limit, use, w->flags,
				w->leaving ? ", leaving" : "",
				w->stop_asked ? ", told to end" : "");
	}
	for (uint32_t i = 0; i < s->clients_top; i++) {
		const struct shadow_client *c = &s->client[i];

		if (c->used && (shadow_held(s, c, gpu) || c->dying[gpu]))
			fprintf(out,
				"    client %" PRIu64 " of %" PRIu64 ": %" PRIu64
				" bytes, %" PRIu64
				" dying, condition %d, busy %d%s%s%s\n",
				c->id, c->workload->id, shadow_held(s, c, gpu),
				c->dying[gpu], c->condition, c->busy,
				c->noted_untakeable ? ", untakeable" : "",
				c->stop_reason ? ", stopped for " : "",
				c->stop_reason ? sl_reason_name(c->stop_reason) : "");
	}
	for (uint32_t i = 0; i < s->demands_top; i++) {
		if (s->demand[i].used && s->demand[i].gpu == gpu)
			print_demand(out, s, &s->demand[i]);
	}
}

void shadow_print(const struct shadow *s, FILE *out)
{
	fprintf(out,
		"sim: the books after it: chain %x, longest wait %" PRIu64
		" ms, others may pass what waits for %" PRIu64 " ms, last resort %d\n",
		s->chain, (uint64_t)(s->wait_max / SL_MS),
		(uint64_t)(s->head_pass / SL_MS), s->last_resort);
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		if (s->gpu[gpu].present)
			print_gpu(out, s, gpu);
	}
}
