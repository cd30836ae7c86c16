/*
 * kubelet - see the header
 *
 * The field numbers are those of the kubelet's published messages. Each claim of a call is a struct
 * work. When it is done it adds its entry to the answer, a map keyed by the claim's uid; the last
 * one sends the answer.
 */
#include "cluster/kubernetes/node/kubelet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "cluster/kubernetes/api/proto.h"
#include "cluster/kubernetes/node/register.h"
#include "cluster/kubernetes/api/stream.h"
#include "wire/wire.h"

#define CLAIMS_MAX 256 /* per call */

struct sl_kubelet {
	struct sl_kubelet_handler handler;
	char driver[128], endpoint[SL_SOCKET_PATH_MAX];
	struct sl_grpc *plugin;
	struct sl_register *registration;
	struct sl_stream health;
};

struct batch {
	struct sl_grpc_call *call;
	struct sl_proto_out answer;
	size_t open; /* unfinished works, plus one while they are being started */
};

struct sl_kubelet_work {
	struct batch *batch;
	bool unprepares;
	char uid[64];
};

/* --- claims ------------------------------------------------------------------------------- */

static void batch_put(struct batch *batch)
{
	if (--batch->open)
		return;
	sl_register_answer(batch->call, &batch->answer);
	free(batch);
}

static void put_device(struct sl_proto_out *out, const struct sl_kubelet_device *device)
{
	struct sl_proto_out inner = {0};

	sl_proto_put_text(&inner, 1, device->request);
	sl_proto_put_text(&inner, 2, device->pool);
	sl_proto_put_text(&inner, 3, device->device);
	for (size_t i = 0; i < SL_ARRAY_LEN(device->cdi) && device->cdi[i]; i++)
		sl_proto_put_text(&inner, 4, device->cdi[i]);
	if (device->share[0])
		sl_proto_put_text(&inner, 5, device->share);
	sl_proto_put_message(out, 1, &inner);
}

void sl_kubelet_done(struct sl_kubelet_work *work,
	const struct sl_kubelet_device *devices, size_t count, const struct sl_error *err)
{
	struct sl_proto_out entry = {0}, value = {0};

	for (size_t i = 0; !err && i < count; i++)
		put_device(&value, &devices[i]);
	/* Unpreparing has no devices; its error is the first field. */
	if (err)
		sl_proto_put_text(&value, work->unprepares ? 1 : 2, err->text);
	sl_proto_put_text(&entry, 1, work->uid);
	sl_proto_put_message(&entry, 2, &value);
	sl_proto_put_message(&work->batch->answer, 1, &entry);
	batch_put(work->batch);
	free(work);
}

static bool read_claim(const struct sl_proto_field *outer, struct sl_kubelet_claim *claim)
{
	struct sl_proto_in in = {outer->data, outer->data + outer->size};
	struct sl_proto_field field;
	bool fits = true;
	int r;

	*claim = (struct sl_kubelet_claim){0};
	while ((r = sl_proto_next(&in, &field)) == SL_PROTO_FIELD) {
		switch (field.number) {
		case 1:
			fits &= sl_proto_text(
				&field, claim->namespace, sizeof(claim->namespace));
			break;
		case 2:
			fits &= sl_proto_text(&field, claim->uid, sizeof(claim->uid));
			break;
		case 3:
			fits &= sl_proto_text(&field, claim->name, sizeof(claim->name));
			break;
		default: break;
		}
	}
	return r == SL_PROTO_END && fits && claim->uid[0] && claim->name[0];
}

/* Reads all claims before any is handled. False: not such a message, or too many. */
static bool read_claims(const uint8_t *message, size_t size,
	struct sl_kubelet_claim *claims, size_t *count)
{
	struct sl_proto_in in = {message, message + size};
	struct sl_proto_field field;
	int r;

	*count = 0;
	while ((r = sl_proto_next(&in, &field)) == SL_PROTO_FIELD) {
		if (field.number != 1)
			continue;
		if (!field.is_bytes || *count == CLAIMS_MAX ||
			!read_claim(&field, &claims[*count]))
			return false;
		(*count)++;
	}
	return r == SL_PROTO_END;
}

static void begin(const struct sl_kubelet *kubelet, struct batch *batch,
	const struct sl_kubelet_claim *claim, bool unprepares)
{
	const struct sl_kubelet_handler *handler = &kubelet->handler;
	struct sl_kubelet_work *work = calloc(1, sizeof(*work));

	if (!work) {
		batch->answer.failed = true;
		return;
	}
	work->batch = batch;
	work->unprepares = unprepares;
	memcpy(work->uid, claim->uid, sizeof(work->uid));
	batch->open++;
	(unprepares ? handler->unprepare : handler->prepare)(
		handler->context, claim, work);
}

static void begin_all(const struct sl_kubelet *kubelet, struct sl_grpc_call *call,
	const uint8_t *message, size_t size, bool unprepares)
{
	sl_cleanup(sl_freep) struct sl_kubelet_claim *claims =
		calloc(CLAIMS_MAX, sizeof(*claims));
	struct batch *batch = calloc(1, sizeof(*batch));
	size_t count;

	if (!claims || !batch) {
		free(batch);
		sl_grpc_refuse(call, SL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	if (!read_claims(message, size, claims, &count)) {
		free(batch);
		sl_grpc_refuse(call, SL_GRPC_INVALID_ARGUMENT,
			"this is no list of at most " SL_STRINGIFY(CLAIMS_MAX) " claims");
		return;
	}
	batch->call = call;
	batch->open = 1;
	for (size_t i = 0; i < count; i++)
		begin(kubelet, batch, &claims[i], unprepares);
	batch_put(batch);
}

/* --- health ------------------------------------------------------------------------------- */

static void put_health(
	struct sl_proto_out *out, const struct sl_kubelet_health *health, uint64_t now_s)
{
	enum { HEALTHY = 1, UNHEALTHY = 2 };
	struct sl_proto_out device = {0}, inner = {0};

	sl_proto_put_text(&device, 1, health->pool);
	sl_proto_put_text(&device, 2, health->device);
	sl_proto_put_message(&inner, 1, &device);
	sl_proto_put_number(&inner, 2, health->trouble ? UNHEALTHY : HEALTHY);
	sl_proto_put_number(&inner, 3, now_s);
	if (health->trouble)
		sl_proto_put_text(&inner, 5, health->trouble);
	sl_proto_put_message(out, 1, &inner);
}

void sl_kubelet_tell_health(
	struct sl_kubelet *kubelet, const struct sl_kubelet_health *devices, size_t count)
{
	struct sl_proto_out out = {0};

	for (size_t i = 0; i < count; i++)
		put_health(&out, &devices[i], (uint64_t)time(NULL));
	if (!out.failed)
		sl_stream_tell(&kubelet->health, out.data, out.size);
	sl_proto_fini(&out);
}

/* --- both sockets ------------------------------------------------------------------------- */

static bool is_watch(const char *method)
{
	return strcmp(method, "/v1.DRAResourceHealth/NodeWatchResources") == 0 ||
	       strcmp(method, "/v1alpha1.DRAResourceHealth/NodeWatchResources") == 0;
}

static void on_plugin(void *context, struct sl_grpc_call *call, const char *method,
	const uint8_t *message, size_t size)
{
	struct sl_kubelet *kubelet = context;

#define SERVICE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
	if (strcmp(method, SERVICE "NodePrepareResources") == 0)
		begin_all(kubelet, call, message, size, false);
	else if (strcmp(method, SERVICE "NodeUnprepareResources") == 0)
		begin_all(kubelet, call, message, size, true);
	else if (is_watch(method))
		sl_stream_add(&kubelet->health, call);
	else
		sl_grpc_refuse(call, SL_GRPC_UNIMPLEMENTED, method);
#undef SERVICE
}

static int open_sockets(
	struct sl_kubelet *kubelet, sd_event *loop, const char *dir, struct sl_error *err)
{
	const struct sl_register_plugin plugin = {.type = "DRAPlugin",
		.name = kubelet->driver,
		.file = kubelet->driver,
		.endpoint = kubelet->endpoint,
		.versions = {"v1.DRAPlugin", "v1.DRAResourceHealth",
			"v1alpha1.DRAResourceHealth"},
		.registered = kubelet->handler.registered,
		.context = kubelet->handler.context};
	int r = sl_register_endpoint(
		dir, kubelet->driver, "dra.sock", kubelet->endpoint, err);

	if (r == 0)
		r = sl_grpc_new(loop, kubelet->endpoint, on_plugin, kubelet,
			&kubelet->plugin, err);
	if (r == 0)
		r = sl_register_new(loop, dir, &plugin, &kubelet->registration, err);
	return r;
}

int sl_kubelet_new(sd_event *loop, const char *dir, const char *driver,
	const struct sl_kubelet_handler *handler, struct sl_kubelet **out,
	struct sl_error *err)
{
	struct sl_kubelet *kubelet = calloc(1, sizeof(*kubelet));
	int r;

	if (!kubelet) {
		sl_error_set(err, "out of memory");
		return sl_err_origin(-ENOMEM);
	}
	kubelet->handler = *handler;
	sl_wire_str(kubelet->driver, sizeof(kubelet->driver), driver);
	r = open_sockets(kubelet, loop, dir, err);
	if (r < 0)
		kubelet = sl_kubelet_free(kubelet);
	*out = kubelet;
	return r;
}

struct sl_kubelet *sl_kubelet_free(struct sl_kubelet *kubelet)
{
	if (!kubelet)
		return NULL;
	kubelet->registration = sl_register_free(kubelet->registration);
	kubelet->plugin = sl_grpc_free(kubelet->plugin);
	sl_stream_fini(&kubelet->health);
	free(kubelet);
	return NULL;
}
