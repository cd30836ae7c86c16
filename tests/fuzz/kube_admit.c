/*
 * Any reviews: the answer is a review of the same uid that either lets through or says why not.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/claims/admit.h"
#include "cluster/kubernetes/api/parse.h"

static void answer(const struct sl_admit_review *review)
{
	static const struct sl_sizes sizes = {.count = 2,
		.of = {{16 * SL_GIB, 16 * SL_GIB, 16 * SL_GIB},
			{80 * SL_GIB, 81 * SL_GIB, 79 * SL_GIB}}};
	/* The review's own object is the namespace, and the object that is looked up. */
	const struct sl_admit_facts facts = {.sizes = &sizes,
		.namespace = review->object,
		.looked_up = review->object};
	struct sl_admit_answer made = {0};
	json_t *response, *paths = sl_admit_look_ups(review);

	if (json_array_size(paths) > SL_ADMIT_LOOK_UPS_MAX)
		abort();
	sl_admit_decide(review, &facts, &made);
	response = sl_admit_response(review->uid, &made);
	if (!response ||
		strcmp(sl_kube_text_at(response, "response", "uid", NULL), review->uid) !=
			0 ||
		json_is_true(sl_kube_at(response, "response", "allowed", NULL)) ==
			!!made.refusal.text[0] ||
		(made.refusal.text[0] && (made.patch || made.templates)))
		abort();
	json_decref(response);
	json_decref(paths);
	sl_admit_answer_fini(&made);
}

static void review_text(char *text, size_t size)
{
	struct sl_admit_review review;
	struct sl_error err = {0};
	char uid[64];
	json_t *json;

	if (sl_admit_find_uid(text, uid) && !uid[0])
		abort();
	json = sl_kube_parse(text, size);
	if (sl_admit_read(json, &review, &err) == SL_ADMIT_OK)
		answer(&review);
	json_decref(json);
}

static const char *const keys[] = {"gpu-fraction", "gpu-memory", "gpu-fraction-limit",
	"gpu-memory.limit", "gpu-fraction-num-devices", "gpu-fraction-container-name",
	"nvidia.com/container.a.gpu-memory.request",
	"nvidia.com/container.a.gpu-memory.limit",
	"nvidia.com/container.b.gpu-memory.limit",
	"nvidia.com/container..gpu-memory.limit", "nvidia.com/container.limit",
	"sluice.dev/default-limit", "sluice.dev/max-request", "sluice.dev/max-limit"};
static const char *const words[] = {
	"0.5", "1", "2", "8192", "4Gi", "2Gi", "90Gi", "8G", "a", "b", ""};
/* That choose key and word. */
#define CHOSEN 12

/* The first bytes choose annotations that make sense. Each line of the rest is one more annotation:
 * its first byte chooses the key, and the value follows. */
static json_t *annotations_of(const uint8_t *data, size_t size)
{
	json_t *annotations = json_object();

	for (size_t i = 0; i < CHOSEN && size > 1; i += 2, data += 2, size -= 2)
		if (data[0] & 1)
			(void)json_object_set_new(annotations,
				keys[(data[0] >> 1) % SL_ARRAY_LEN(keys)],
				json_string(words[data[1] % SL_ARRAY_LEN(words)]));
	while (size > 0) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t line = end ? (size_t)(end - data) : size;
		json_t *value =
			line > 1 ? json_stringn((const char *)data + 1, line - 1) : NULL;

		if (value)
			(void)json_object_set_new(
				annotations, keys[data[0] % SL_ARRAY_LEN(keys)], value);
		line += end ? 1 : 0;
		data += line;
		size -= line;
	}
	return annotations;
}

static void review_words(const uint8_t *data, size_t size)
{
	json_t *review = json_pack("{sssss{sssssss{ssss}s{s{sos[{ss}]}s{s[{ss}{ss}]}}}}",
		"kind", "AdmissionReview", "apiVersion", "admission.k8s.io/v1", "request",
		"uid", "u", "operation", "CREATE", "namespace", "n", "kind", "group", "",
		"kind", "Pod", "object", "metadata", "annotations",
		annotations_of(data, size), "ownerReferences", "kind", "Job", "spec",
		"containers", "name", "a", "name", "b");
	struct sl_admit_review is;
	struct sl_error err = {0};

	if (!review || sl_admit_read(review, &is, &err) != SL_ADMIT_OK)
		abort();
	answer(&is);
	json_decref(review);
}

/* Once as the whole review, once as the pod in one, once as the pod's annotations. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char head[] =
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
		"\"request\":{\"uid\":\"u\",\"operation\":\"CREATE\",\"namespace\":\"n\","
		"\"kind\":{\"group\":\"\",\"kind\":\"Pod\"},\"object\":";
	char *text = malloc(sizeof(head) + size + 3);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	review_text(text, size);
	memcpy(stpcpy(text, head), data, size);
	memcpy(text + sizeof(head) - 1 + size, "}}", 3);
	review_text(text, sizeof(head) - 1 + size + 2);
	review_words(data, size);
	free(text);
	return 0;
}
