/*
 * inventory - by UUID, never by index
 *
 * A GPU keeps its number in the policy for the life of the daemon, whatever NVML's order does
 * (peer-failures row 19). CUDA's ordinals follow the PCI bus among all GPUs that NVML shows,
 * managed or not, because the indices in CUDA_VISIBLE_DEVICES count unmanaged GPUs, too.
 */
#include "daemon/gpu/inventory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/core/host_budget.h"
#include "daemon/core/lock.h"
#include "daemon/gpu/asking.h"
#include "daemon/gpu/groups.h"
#include "daemon/gpu/measure.h"
#include "daemon/gpu/visible.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/state/timer.h"

#define RETRY_NS (3 * SL_S)
/* From this size on a GPU has the whole reserve. */
#define RESERVE_WHOLE_AT (16 * SL_GIB)
#define RESERVE_BYTES    (2 * SL_GIB)
#define RESERVE_PERCENT  3
/* Smaller GPUs reserve a part of it, which reaches the whole at that size. */
#define RESERVE_SMALL_DIVISOR 16
#define RESERVE_MORE_ABOVE    (4 * SL_GIB)
#define RESERVE_MORE_DIVISOR  12

int sl_inventory_find(
	const struct sl_daemon *daemon, const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		if (memcmp(daemon->gpus[i].uuid, uuid, SL_WIRE_UUID_BYTES) == 0)
			return (int)i;
	}
	return -1;
}

uint32_t sl_inventory_managed(const struct sl_daemon *daemon)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < daemon->gpu_count; i++)
		count += daemon->gpus[i].managed;
	return count;
}

bool sl_inventory_is_taken(const struct sl_daemon *daemon, struct sl_error *err)
{
	const struct sl_gpu *taken = NULL;

	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		if (daemon->gpus[i].managed)
			return false;
		if (daemon->gpus[i].taken)
			taken = &daemon->gpus[i];
	}
	if (taken)
		sl_error_set(err, "no GPU is left to manage: %s at %s: %s", taken->name,
			taken->pci, taken->why_not);
	return taken != NULL;
}

static struct sl_gpu *place_for(
	struct sl_daemon *daemon, const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	int number = sl_inventory_find(daemon, uuid);
	struct sl_gpu *gpu;

	if (number >= 0)
		return &daemon->gpus[number];
	if (daemon->gpu_count >= SL_NODE_GPUS_MAX)
		return NULL;
	gpu = &daemon->gpus[daemon->gpu_count++];
	*gpu = (struct sl_gpu){.due = SL_NS_NEVER, .pause = SL_ASKING_PAUSE_MIN_NS};
	for (int i = 0; i < SL_LOCK_DIRS_MAX; i++)
		gpu->lock_fds[i] = -1;
	memcpy(gpu->uuid, uuid, sizeof(gpu->uuid));
	return gpu;
}

static bool is_listed(
	const struct sl_config_gpus *gpus, const uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	for (uint32_t i = 0; i < gpus->count; i++) {
		if (memcmp(gpus->uuids[i], uuid, SL_WIRE_UUID_BYTES) == 0)
			return true;
	}
	return gpus->all;
}

static void refuse(struct sl_gpu *gpu, const char *uuid, const char *why)
{
	if (strcmp(gpu->why_not, why) != 0)
		sl_warning("not managing %s: %s", uuid, why);
	sl_wire_str(gpu->why_not, sizeof(gpu->why_not), why);
}

static bool take_lock(struct sl_gpu *gpu, const char *uuid)
{
	char why[160];
	int holder = 0;
	int r = sl_lock_gpu(NULL, uuid, gpu->lock_fds, &holder);

	gpu->taken = r == SL_LOCK_BUSY;
	if (r == SL_LOCK_OK)
		return true;
	if (r == SL_LOCK_BUSY)
		(void)snprintf(why, sizeof(why),
			"another sluiced (process %d) manages it; stop that one, or list "
			"other "
			"GPUs under gpus:",
			holder);
	else
		(void)snprintf(why, sizeof(why),
			"its lock file cannot be made; see the files of sluiced(8), and "
			"make "
			"one of the folders, for yourself alone");
	refuse(gpu, uuid, why);
	return false;
}

void sl_inventory_announce(struct sl_daemon *daemon, const struct sl_gpu *gpu)
{
	struct sl_event event = {.type = SL_EVENT_GPU_ADD};

	event.gpu_add.gpu = (uint32_t)(gpu - daemon->gpus);
	event.gpu_add.capacity_bytes = gpu->capacity_bytes;
	event.gpu_add.reserve_bytes = gpu->reserve_bytes;
	event.gpu_add.driver_bytes = gpu->driver_bytes;
	event.gpu_add.fixed = sl_groups_fixed(daemon, 1u << event.gpu_add.gpu) != 0;
	sl_drive(daemon, &event);
}

static void manage(struct sl_daemon *daemon, struct sl_gpu *gpu)
{
	uint32_t number = (uint32_t)(gpu - daemon->gpus);
	char size[32], reserve[32];

	gpu->managed = true;
	gpu->why_not[0] = '\0';
	sl_info("GPU %u: %s at %s, %s, of which %s are for the driver, contexts and code",
		number, gpu->name, gpu->pci,
		sl_bytes_format(gpu->capacity_bytes, size, sizeof(size)),
		sl_bytes_format(gpu->reserve_bytes, reserve, sizeof(reserve)));
	sl_groups_join(daemon, gpu);
	sl_inventory_announce(daemon, gpu);
	sl_asking_begin(daemon, number);
	daemon->up->gpus_changed(daemon);
	sl_commit_soon(daemon);
}

uint64_t sl_inventory_reserve(uint64_t capacity_bytes)
{
	if (capacity_bytes >= RESERVE_WHOLE_AT)
		return sl_max_u64(RESERVE_BYTES, capacity_bytes / 100 * RESERVE_PERCENT);
	return capacity_bytes / RESERVE_SMALL_DIVISOR +
	       sl_sub_sat(capacity_bytes, RESERVE_MORE_ABOVE) / RESERVE_MORE_DIVISOR;
}

/* A configured reserve that leaves nothing to share is meant for larger GPUs. */
static void set_reserve(struct sl_gpu *gpu, uint64_t wanted_bytes, const char *uuid)
{
	char wanted[32], size[32], reserve[32];

	gpu->reserve_is_ours =
		wanted_bytes != SL_CONFIG_WORD && wanted_bytes >= gpu->capacity_bytes;
	gpu->reserve_bytes = wanted_bytes == SL_CONFIG_WORD || gpu->reserve_is_ours
				     ? sl_inventory_reserve(gpu->capacity_bytes)
				     : wanted_bytes;
	if (gpu->reserve_is_ours)
		sl_warning("context_reserve is %s, and %s has only %s: it would share "
			   "nothing; %s are reserved there, as with auto",
			sl_bytes_format(wanted_bytes, wanted, sizeof(wanted)), uuid,
			sl_bytes_format(gpu->capacity_bytes, size, sizeof(size)),
			sl_bytes_format(gpu->reserve_bytes, reserve, sizeof(reserve)));
}

/* Merges one device of the list. Returns whether a later try could end differently. */
static bool merge(
	struct sl_daemon *daemon, const struct sl_nvml_device *device, uint32_t rank)
{
	struct sl_gpu *gpu = place_for(daemon, device->uuid);

	if (!gpu) {
		sl_warning("not managing %s: there is room for %d GPUs",
			device->uuid_text, SL_NODE_GPUS_MAX);
		return false;
	}
	gpu->present = true;
	gpu->rank = rank;
	gpu->pci_key = device->pci_key;
	sl_wire_str(gpu->name, sizeof(gpu->name), device->name);
	sl_wire_str(gpu->pci, sizeof(gpu->pci), device->pci);
	gpu->node = sl_host_budget_node("", gpu->pci);
	if (gpu->managed)
		return false;
	gpu->capacity_bytes = device->capacity_bytes;
	if (!is_listed(&daemon->config.gpus, device->uuid)) {
		/* As configured, so no warning. */
		sl_debug("not managing %s: the configuration does not list it",
			device->uuid_text);
		return false;
	}
	if (device->mig) {
		refuse(gpu, device->uuid_text,
			"it is split into MIG instances; nvidia-smi -mig 0 makes it "
			"whole again");
		return true;
	}
	if (device->exclusive) {
		refuse(gpu, device->uuid_text,
			"its compute mode admits one process only; nvidia-smi -c DEFAULT "
			"opens it");
		return true;
	}
	if (!take_lock(gpu, device->uuid_text))
		return true;
	set_reserve(gpu, daemon->config.context_reserve, device->uuid_text);
	manage(daemon, gpu);
	return false;
}

/* Asks NVML by UUID about GPUs that have left its list; the answer decides whether they are lost
 * (clients/gpu_loss.c). Returns whether a later list could differ. */
static bool note_absence(struct sl_daemon *daemon, bool was_present[SL_NODE_GPUS_MAX])
{
	bool again = false;

	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		const struct sl_gpu *gpu = &daemon->gpus[i];

		if (gpu->present)
			continue;
		if (was_present[i])
			sl_warning("GPU %u (%s) is gone from NVML's list; nothing new "
				   "starts on it",
				i, gpu->name);
		if (was_present[i] && !gpu->lost)
			sl_asking_now(daemon, i);
		again |= gpu->managed && !gpu->lost;
	}
	return again;
}

/*
 * CUDA's number of a listed GPU. NVML may count a lost GPU without giving its UUID; CUDA then
 * counts it too, so the other GPUs keep their numbers.
 */
static uint32_t rank_of(const struct sl_daemon *daemon,
	const struct sl_nvml_inventory *list, uint32_t place)
{
	uint32_t missing = 0, before = 0;

	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		bool listed = false;

		for (uint32_t j = 0; j < list->count; j++)
			listed |= memcmp(daemon->gpus[i].uuid, list->devices[j].uuid,
					  SL_WIRE_UUID_BYTES) == 0;
		missing += !listed;
		before +=
			!listed && daemon->gpus[i].pci_key < list->devices[place].pci_key;
	}
	return list->unnamed >= missing ? place + before : place;
}

void sl_inventory_explain(struct sl_daemon *daemon)
{
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		const struct sl_gpu *gpu = &daemon->gpus[i];

		if (!gpu->why_not[0] || (!gpu->present && !gpu->lost))
			continue;
		(void)snprintf(daemon->nvml_text, sizeof(daemon->nvml_text),
			"%s at %s is %s: %s", gpu->name, gpu->pci,
			gpu->lost ? "lost" : "not managed", gpu->why_not);
		return;
	}
	daemon->nvml_text[0] = '\0';
}

void sl_inventory_take(struct sl_daemon *daemon, const struct sl_measure_answer *answer)
{
	bool was_present[SL_NODE_GPUS_MAX], again = !answer->ok;

	daemon->inventory_seen = true;
	daemon->nvml_ok = answer->ok;
	if (!answer->ok) {
		if (strcmp(daemon->nvml_text, answer->text) != 0)
			sl_warning("%s", answer->text);
		sl_wire_str(daemon->nvml_text, sizeof(daemon->nvml_text), answer->text);
	} else {
		sl_wire_str(daemon->driver, sizeof(daemon->driver),
			answer->inventory->driver);
		for (uint32_t i = 0; i < daemon->gpu_count; i++) {
			was_present[i] = daemon->gpus[i].present;
			daemon->gpus[i].present = false;
		}
		for (uint32_t i = daemon->gpu_count; i < SL_NODE_GPUS_MAX; i++)
			was_present[i] = false;
		for (uint32_t i = 0; i < answer->inventory->count; i++)
			again |= merge(daemon, &answer->inventory->devices[i],
				rank_of(daemon, answer->inventory, i));
		again |= note_absence(daemon, was_present);
		again |= answer->inventory->count == 0;
		sl_inventory_explain(daemon);
	}
	if (again)
		sl_timer_set(daemon->inventory_timer, sl_clock_now() + RETRY_NS);
}

int sl_inventory_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;

	sl_measure_ask_inventory(daemon->measure);
	return 0;
}

int sl_inventory_recall(struct sl_daemon *daemon, const uint8_t uuid[SL_WIRE_UUID_BYTES],
	const char *name, const char *pci, uint64_t pci_key, uint64_t capacity_bytes,
	uint64_t reserve_bytes)
{
	struct sl_gpu *gpu = place_for(daemon, uuid);
	char uuid_text[41];

	if (!gpu)
		return -1;
	if (gpu->managed)
		return (int)(gpu - daemon->gpus);
	sl_wire_uuid_format(uuid, uuid_text);
	gpu->pci_key = pci_key;
	gpu->capacity_bytes = capacity_bytes;
	gpu->reserve_bytes = reserve_bytes;
	sl_wire_str(gpu->name, sizeof(gpu->name), name);
	sl_wire_str(gpu->pci, sizeof(gpu->pci), pci);
	gpu->node = sl_host_budget_node("", gpu->pci);
	if (gpu->present || !take_lock(gpu, uuid_text))
		return -1;
	manage(daemon, gpu);
	return (int)(gpu - daemon->gpus);
}

uint32_t sl_inventory_usable(const struct sl_daemon *daemon, const char *visible)
{
	const char *uuids[SL_VISIBLE_GPUS_MAX] = {0};
	char texts[SL_NODE_GPUS_MAX][41];
	uint32_t count = 0, mask = 0;
	uint64_t ranks = UINT64_MAX;

	if (!daemon->nvml_ok)
		return 0;
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		const struct sl_gpu *gpu = &daemon->gpus[i];

		sl_wire_uuid_format(gpu->uuid, texts[i]);
		if (!gpu->present || gpu->rank >= SL_VISIBLE_GPUS_MAX)
			continue;
		uuids[gpu->rank] = texts[i];
		count = sl_max_u64(count, gpu->rank + 1);
	}
	/* A rank may be empty if NVML shows more GPUs than there are places. */
	for (uint32_t i = 0; i < count; i++)
		uuids[i] = uuids[i] ? uuids[i] : "";
	if (visible)
		ranks = sl_visible_mask(visible, uuids, count);
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		const struct sl_gpu *gpu = &daemon->gpus[i];

		if (gpu->managed && gpu->present && !gpu->lost &&
			(ranks & 1ull << gpu->rank))
			mask |= 1u << i;
	}
	return mask;
}

void sl_inventory_fini(struct sl_daemon *daemon)
{
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		char uuid[41];

		sl_wire_uuid_format(daemon->gpus[i].uuid, uuid);
		sl_lock_gpu_drop(NULL, uuid, daemon->gpus[i].lock_fds);
	}
}
