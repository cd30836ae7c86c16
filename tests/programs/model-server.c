/*
 * model-server - a small inference server: weights for life, activations per request
 *
 * It loads weights into GPU memory, then answers requests of changing batch size. For each
 * request it allocates the activations in one piece, runs two kernels, and compares every answer
 * with the same arithmetic on the CPU. It holds the activations for a while, as a real server
 * does while it sends tokens, and frees them. So its need changes from moment to moment, and its
 * worst case is many times its mean. Out of memory it dies, as an ordinary server would.
 *
 * Lines: "loaded"; for each request "ask", "granted" once the memory is there, and "request" with
 * the answers, "freed"; "end" with the totals (also when it dies of memory: "oom":1).
 */
#include "prog.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct server {
	const char *name;
	uint64_t weights_bytes, item_bytes, batch_max, requests, seed, hold_ms, think_ms;
	uint64_t peak_every, touch_bytes, asked;
	CUfunction fill, activate, reduce;
	CUdeviceptr weights, answers;
	uint32_t *host_answers;
	uint64_t done, wrong, peak_bytes, wait_max_ms, started_ms;
};

static void say_end(const struct server *s, int oom)
{
	prog_say("{\"event\":\"end\",\"name\":\"%s\",\"requests\":%llu,\"wrong\":%llu,"
		 "\"oom\":%d,\"peak_bytes\":%llu,\"wait_max_ms\":%llu,\"ms\":%llu}",
		s->name, (unsigned long long)s->done, (unsigned long long)s->wrong, oom,
		(unsigned long long)s->peak_bytes, (unsigned long long)s->wait_max_ms,
		(unsigned long long)(prog_now_ms() - s->started_ms));
}

/* Every call goes through here: out of memory ends the server, with its totals. */
static void server_must(struct server *s, CUresult result, const char *call)
{
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		say_end(s, 1);
	prog_must(result, call);
}
#define SERVER_MUST(s, call) server_must(s, call, #call)

static void load(struct server *s)
{
	CUmodule module;

	prog_context(0);
	server_must(s, prog_kernels_try(&module), "cuModuleLoadData");
	s->fill = prog_kernel(module, "prog_fill");
	s->activate = prog_kernel(module, "prog_activate");
	s->reduce = prog_kernel(module, "prog_reduce");
	SERVER_MUST(s, cuMemAlloc_v2(&s->weights, s->weights_bytes));
	SERVER_MUST(s, cuMemAlloc_v2(&s->answers, s->batch_max * sizeof(uint32_t)));
	s->host_answers = calloc(s->batch_max, sizeof(uint32_t));
	if (!s->host_answers)
		prog_must(CUDA_ERROR_OUT_OF_MEMORY, "calloc");
	SERVER_MUST(
		s, prog_fill(s->fill, s->weights, s->weights_bytes, (uint32_t)s->seed));
	SERVER_MUST(s, cuCtxSynchronize());
	s->peak_bytes = s->weights_bytes;
	prog_say("{\"event\":\"loaded\",\"name\":\"%s\",\"held_bytes\":%llu}", s->name,
		(unsigned long long)s->weights_bytes);
}

/* What the GPU should have answered for one item. */
static uint32_t expected(const struct server *s, uint64_t item, uint32_t input)
{
	uint64_t per_item = s->item_bytes / s->touch_bytes;
	uint64_t weight_count = (s->weights_bytes + 4095) / 4096;
	uint32_t sum = 0;

	for (uint64_t k = item * per_item; k < (item + 1) * per_item; k++)
		sum += prog_mix(input, k) ^ prog_mix((uint32_t)s->seed, k % weight_count);
	return sum;
}

static void run_kernels(
	struct server *s, CUdeviceptr activations, uint64_t batch, uint32_t input)
{
	uint64_t stride = s->touch_bytes / 4, per_item = s->item_bytes / s->touch_bytes;
	uint64_t count = batch * per_item;
	uint64_t weight_count = (s->weights_bytes + 4095) / 4096;
	uint64_t weight_stride = PROG_PAGE_WORDS;
	void *first[] = {&activations, &count, &stride, &input, &s->weights,
		&weight_count, &weight_stride};
	void *second[] = {&activations, &per_item, &stride, &batch, &s->answers};

	server_must(s, prog_launch(s->activate, count, NULL, first), "cuLaunchKernel");
	server_must(s, prog_launch(s->reduce, batch, NULL, second), "cuLaunchKernel");
	SERVER_MUST(s,
		cuMemcpyDtoH_v2(s->host_answers, s->answers, batch * sizeof(uint32_t)));
}

static void serve(struct server *s, uint64_t batch)
{
	uint64_t bytes = batch * s->item_bytes, wrong = 0, asked_ms = prog_now_ms();
	uint64_t waited_ms;
	uint32_t input = (uint32_t)(s->seed * 1000003 + s->done);
	CUdeviceptr activations;

	prog_say("{\"event\":\"ask\",\"name\":\"%s\",\"bytes\":%llu}", s->name,
		(unsigned long long)bytes);
	SERVER_MUST(s, cuMemAlloc_v2(&activations, bytes));
	waited_ms = prog_now_ms() - asked_ms;
	if (waited_ms > s->wait_max_ms)
		s->wait_max_ms = waited_ms;
	prog_say("{\"event\":\"granted\",\"name\":\"%s\",\"held_bytes\":%llu,"
		 "\"waited_ms\":%llu}",
		s->name, (unsigned long long)(s->weights_bytes + bytes),
		(unsigned long long)waited_ms);
	if (s->peak_bytes < s->weights_bytes + bytes)
		s->peak_bytes = s->weights_bytes + bytes;
	run_kernels(s, activations, batch, input);
	for (uint64_t i = 0; i < batch; i++)
		wrong += s->host_answers[i] != expected(s, i, input);
	s->wrong += wrong;
	s->done++;
	prog_say("{\"event\":\"request\",\"name\":\"%s\",\"request\":%llu,\"batch\":%llu,"
		 "\"held_bytes\":%llu,\"waited_ms\":%llu,\"wrong\":%llu}",
		s->name, (unsigned long long)s->done, (unsigned long long)batch,
		(unsigned long long)(s->weights_bytes + bytes),
		(unsigned long long)waited_ms, (unsigned long long)s->wrong);
	prog_sleep_ms(s->hold_ms);
	SERVER_MUST(s, cuMemFree_v2(activations));
	prog_say("{\"event\":\"freed\",\"name\":\"%s\",\"held_bytes\":%llu}", s->name,
		(unsigned long long)s->weights_bytes);
}

/* A line of standard input is a question; false: there will be no more. */
static bool is_asked(void)
{
	int c = getchar();

	while (c != '\n' && c != EOF)
		c = getchar();
	return c != EOF;
}

int main(int argc, char **argv)
{
	struct server s = {
		.name = "model",
		.weights_bytes = 64 << 20,
		.item_bytes = 4 << 20,
		.touch_bytes = 4096,
		.batch_max = 8,
		.requests = 10,
		.seed = 1,
	};
	const struct prog_option options[] = {
		{"name", PROG_TEXT, &s.name, "name in the output"},
		{"weights", PROG_SIZE, &s.weights_bytes, "bytes of weights"},
		{"item", PROG_SIZE, &s.item_bytes, "bytes of activations per batch item"},
		{"touch", PROG_SIZE, &s.touch_bytes,
			"bytes between the words that are computed, 4096 at least"},
		{"batch-max", PROG_NUMBER, &s.batch_max, "largest batch"},
		{"peak-every", PROG_NUMBER, &s.peak_every,
			"every Nth request has the largest batch; 0: by chance"},
		{"requests", PROG_NUMBER, &s.requests, "requests to answer"},
		{"seed", PROG_NUMBER, &s.seed, "seed of weights and batch sizes"},
		{"asked", PROG_NUMBER, &s.asked,
			"1: each request waits for a line of standard input"},
		{"hold-ms", PROG_NUMBER, &s.hold_ms, "time activations are held"},
		{"think-ms", PROG_NUMBER, &s.think_ms, "longest pause between requests"},
	};
	uint64_t random;

	prog_options(argc, argv, "Answers requests of changing batch size.", options,
		sizeof(options) / sizeof(options[0]));
	if (!s.batch_max || s.touch_bytes < 4096 || s.item_bytes < s.touch_bytes ||
		!s.weights_bytes)
		return PROG_USAGE;
	random = s.seed;
	s.started_ms = prog_now_ms();
	load(&s);
	for (uint64_t i = 1; i <= s.requests && (!s.asked || is_asked()); i++) {
		uint64_t batch = 1 + prog_random(&random) % s.batch_max;

		if (s.peak_every)
			batch = i % s.peak_every ? (batch + 3) / 4 : s.batch_max;
		serve(&s, batch);
		prog_sleep_ms(s.think_ms ? prog_random(&random) % s.think_ms : 0);
	}
	SERVER_MUST(&s, cuMemFree_v2(s.weights));
	SERVER_MUST(&s, cuMemFree_v2(s.answers));
	free(s.host_answers);
	say_end(&s, 0);
	return s.wrong ? PROG_WRONG : PROG_OK;
}
