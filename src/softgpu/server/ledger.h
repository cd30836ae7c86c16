/*
 * ledger - the holders of the software GPUs' memory
 *
 * The server's accounts: pages, handles, holders, hidden bytes. Pure state and the memfds behind
 * it; no sockets, no clock. One thread. A holder is a client process or an exported descriptor; a
 * handle lives while it has a holder. Sizes are bytes; results are CUresult numbers where noted.
 */
#ifndef SL_SOFTGPU_SERVER_LEDGER_H
#define SL_SOFTGPU_SERVER_LEDGER_H

#include "base/list.h"
#include "softgpu/link/proto.h"

struct sl_ledger_device {
	int memfd;
	uint32_t page_count, used_pages;
	uint64_t hidden_bytes;
	uint32_t *tenant; /* per page: serial of the last holder; 0: clean */
	uint8_t *taken;   /* per page */
};

struct sl_ledger_handle {
	struct sl_link by_id; /* in a bucket */
	struct sl_link holds; /* struct sl_ledger_hold.of_handle */
	uint64_t id, bytes;
	uint32_t device, extent_count;  /* no extent: its holder is away */
	struct sl_ledger_holder *owner; /* its maker while that lives, or NULL */
	struct sl_sg_extent *extent;
};

struct sl_ledger_hold {
	struct sl_link of_handle, of_holder;
	struct sl_ledger_handle *handle;
	struct sl_ledger_holder *holder;
	uint32_t count;
};

struct sl_ledger_holder {
	struct sl_link holds;
	uint32_t serial; /* never 0, never reused */
	uint64_t hidden_bytes[SL_SOFTGPU_GPUS_MAX];
	int32_t contexts[SL_SOFTGPU_GPUS_MAX];
	/* What of these it had when it went away. */
	uint64_t away_hidden_bytes[SL_SOFTGPU_GPUS_MAX];
	int32_t away_contexts[SL_SOFTGPU_GPUS_MAX];
};

#define SL_LEDGER_BUCKETS 4096

struct sl_ledger {
	struct sl_softgpu_config config; /* without SL_SOFTGPU_AUTO */
	struct sl_ledger_device device[SL_SOFTGPU_GPUS_MAX];
	struct sl_link bucket[SL_LEDGER_BUCKETS];
	uint64_t next_id;
	uint32_t next_serial;
};

/* 0 or -errno. The config is copied and its automatic sizes filled in. */
SL_MUST_CHECK int sl_ledger_init(
	struct sl_ledger *l, const struct sl_softgpu_config *config);

void sl_ledger_holder_init(struct sl_ledger *l, struct sl_ledger_holder *h);
/* Releases all that the holder has, hidden bytes too. */
void sl_ledger_holder_fini(struct sl_ledger *l, struct sl_ledger_holder *h);

/* A CUresult; *out only on success. All or nothing. Bytes are rounded up to pages. */
SL_MUST_CHECK int sl_ledger_create(struct sl_ledger *l, struct sl_ledger_holder *h,
	uint32_t device, uint64_t bytes, struct sl_ledger_handle **out);
/* NULL: no such handle, or it is not the holder's. h NULL: any holder's. */
struct sl_ledger_handle *sl_ledger_find(
	struct sl_ledger *l, const struct sl_ledger_holder *h, uint64_t id);
/* 0 or -ENOMEM. */
SL_MUST_CHECK int sl_ledger_hold(
	struct sl_ledger *l, struct sl_ledger_holder *h, struct sl_ledger_handle *handle);
/* Drops one hold; the handle is freed with the last one. A CUresult. */
SL_MUST_CHECK int sl_ledger_release(
	struct sl_ledger *l, struct sl_ledger_holder *h, uint64_t id);
/*
 * away: the holder gives up all pages, hidden bytes and contexts, and keeps its handles; the bytes
 * are lost. back: it gets as many again, those of device i on device to[i] (a permutation), all or
 * nothing. CUresults; NOT_SUPPORTED: another holder shares a handle.
 */
SL_MUST_CHECK int sl_ledger_away(struct sl_ledger *l, struct sl_ledger_holder *h);
SL_MUST_CHECK int sl_ledger_back(
	struct sl_ledger *l, struct sl_ledger_holder *h, const uint32_t *to);
/* A CUresult. */
SL_MUST_CHECK int sl_ledger_hide(
	struct sl_ledger *l, struct sl_ledger_holder *h, uint32_t device, uint64_t bytes);
void sl_ledger_unhide(
	struct sl_ledger *l, struct sl_ledger_holder *h, uint32_t device, uint64_t bytes);

uint64_t sl_ledger_capacity(
	const struct sl_ledger *l); /* of each device, without the reserve */
uint64_t sl_ledger_used(const struct sl_ledger *l, uint32_t device); /* hidden included */
/* What NVML charges to the holder: handles it made, and its hidden bytes. */
uint64_t sl_ledger_used_by(
	const struct sl_ledger *l, const struct sl_ledger_holder *h, uint32_t device);

#endif
