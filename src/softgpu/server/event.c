/*
 * event - interprocess events
 *
 * Such an event is a few words in a memfd that all processes of the box map. The processes count
 * records, and those that their streams have reached, there and without requests. The server only
 * assigns slots, knows their holders, and marks the records of a dead process as reached. So waits
 * for them end, as they do when the real driver destroys a process's context.
 */
#include "softgpu/server/internal.h"

#include "base/cuda_types.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int memfd = -1;
static struct sl_sg_words *words; /* SL_SG_WORDS_MAX places */
static uint32_t holders[SL_SG_WORDS_MAX];
static uint32_t search; /* where the search for a free slot continues */
static uint64_t last_holder;

/* A client's hold of an event; a second open is a second hold. */
struct hold {
	struct sl_link link;
	uint64_t id;
	uint64_t holder; /* the client's signature on its records */
};

/* A name contains how often its slot was assigned, so an old name is invalid. */
static uint64_t name_of(uint32_t place)
{
	return words[place].generation << 16 | place;
}

static bool is_open(uint64_t id)
{
	uint32_t place = id & 0xffff;

	return words && place < SL_SG_WORDS_MAX && holders[place] && name_of(place) == id;
}

static bool prepare(void)
{
	size_t bytes = SL_SG_WORDS_MAX * sizeof(*words);

	if (words)
		return true;
	if (memfd < 0)
		memfd = memfd_create("sluice-softgpu-events", MFD_CLOEXEC);
	if (memfd < 0 || ftruncate(memfd, (off_t)bytes) < 0)
		return false;
	words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (words == MAP_FAILED)
		words = NULL;
	return words;
}

static int hold(struct client *c, uint32_t place, struct sl_sg_reply *reply)
{
	struct hold *h = calloc(1, sizeof(*h));

	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	h->id = name_of(place);
	h->holder = ++last_holder;
	holders[place]++;
	sl_list_push_tail(&c->events, &h->link);
	reply->id = h->id;
	reply->value = h->holder;
	return CUDA_SUCCESS;
}

int sl_server_event_new(struct client *c, struct sl_sg_reply *reply)
{
	if (!prepare())
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < SL_SG_WORDS_MAX; i++) {
		uint32_t place = (search + i) % SL_SG_WORDS_MAX;

		if (holders[place])
			continue;
		search = place + 1;
		words[place] =
			(struct sl_sg_words){.generation = words[place].generation + 1};
		return hold(c, place, reply);
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

int sl_server_event_open(struct client *c, uint64_t id, struct sl_sg_reply *reply)
{
	return is_open(id) ? hold(c, id & 0xffff, reply) : CUDA_ERROR_INVALID_HANDLE;
}

int sl_server_event_memfd(void)
{
	return prepare() ? memfd : -1;
}

static void let_go(struct hold *h, bool died)
{
	struct sl_sg_words *w = &words[h->id & 0xffff];

	/* The dead process's last record will not be reached. */
	if (died && __atomic_load_n(&w->recorder, __ATOMIC_ACQUIRE) == h->holder)
		__atomic_store_n(&w->reached,
			__atomic_load_n(&w->recorded, __ATOMIC_ACQUIRE),
			__ATOMIC_RELEASE);
	holders[h->id & 0xffff]--;
	sl_list_unlink(&h->link);
	free(h);
}

int sl_server_event_close(struct client *c, uint64_t holder)
{
	for (struct sl_link *link = c->events.next; link != &c->events;
		link = link->next) {
		struct hold *h = SL_LIST_ENTRY(link, struct hold, link);

		if (h->holder == holder) {
			let_go(h, false);
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_HANDLE;
}

void sl_server_event_drop(struct client *c)
{
	while (!sl_list_is_empty(&c->events))
		let_go(SL_LIST_ENTRY(c->events.next, struct hold, link), true);
}
