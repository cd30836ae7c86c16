/* Reviews in, answers out. */
#include "../../base/test.h"

#include <gnutls/gnutls.h>
#include <jansson.h>
#include <stdlib.h>

#include "cluster/kubernetes/claims/admit.h"
#include "cluster/kubernetes/api/parse.h"

#define REVIEW(kind, object)                                                            \
	"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","         \
	"\"request\":{\"uid\":\"u-1\",\"operation\":\"CREATE\",\"namespace\":\"team\"," \
	"\"kind\":{" kind "},\"object\":" object "}}"
#define POD      "\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\""
#define CLAIM    "\"group\":\"resource.k8s.io\",\"kind\":\"ResourceClaim\""
#define TEMPLATE "\"group\":\"resource.k8s.io\",\"kind\":\"ResourceClaimTemplate\""
#define HALF     "\"metadata\":{\"annotations\":{\"gpu-fraction\":\"0.5\"}}"
#define LOOK_UP  "/apis/resource.k8s.io/v1/namespaces/team/"

static const struct sl_sizes one_size = {
	.count = 1, .of = {{16 * SL_GIB, 16 * SL_GIB, 16 * SL_GIB}}};

static const struct sl_sizes two_sizes = {.count = 2,
	.of = {{16 * SL_GIB, 16 * SL_GIB, 16 * SL_GIB},
		{80 * SL_GIB, 80 * SL_GIB, 80 * SL_GIB}}};
static const struct sl_sizes *sizes = &one_size;

/* The answer to text; looked_up may be NULL. Borrowed until the next one. */
static struct {
	json_t *review, *namespace, *looked_up, *response;
	struct sl_admit_review is;
	struct sl_admit_answer answer;
} last;

static void forget(void)
{
	json_decref(sl_steal(&last.review));
	json_decref(sl_steal(&last.namespace));
	json_decref(sl_steal(&last.looked_up));
	json_decref(sl_steal(&last.response));
	sl_admit_answer_fini(&last.answer);
}

static const struct sl_admit_answer *answer_to(
	const char *text, const char *namespace, const char *looked_up)
{
	struct sl_error err = {0};
	struct sl_admit_facts facts;

	forget();
	last.review = json_loads(text, 0, NULL);
	assert_non_null(last.review);
	last.namespace = namespace ? json_loads(namespace, 0, NULL) : NULL;
	last.looked_up = looked_up ? json_loads(looked_up, 0, NULL) : NULL;
	assert_int_equal(sl_admit_read(last.review, &last.is, &err), SL_ADMIT_OK);
	facts = (struct sl_admit_facts){
		.sizes = sizes, .namespace = last.namespace, .looked_up = last.looked_up};
	if (sl_admit_concerns(&last.is))
		sl_admit_decide(&last.is, &facts, &last.answer);
	last.response = sl_admit_response(last.is.uid, &last.answer);
	assert_non_null(last.response);
	assert_string_equal(
		sl_kube_text_at(last.response, "response", "uid", NULL), "u-1");
	return &last.answer;
}

static char *patch_text(void)
{
	const char *coded = sl_kube_text_at(last.response, "response", "patch", NULL);
	gnutls_datum_t in = {(unsigned char *)(uintptr_t)coded, (unsigned)strlen(coded)};
	gnutls_datum_t out = {0};
	char *text;

	assert_int_equal(gnutls_base64_decode2(&in, &out), 0);
	text = strndup((const char *)out.data, out.size);
	gnutls_free(out.data);
	return text;
}

static const char *template_name(size_t i)
{
	return sl_kube_text_at(
		json_array_get(last.answer.templates, i), "metadata", "name", NULL);
}

static void pod_gets_a_claim(void **state)
{
	const struct sl_admit_answer *answer = answer_to(
		REVIEW(POD, "{" HALF ",\"spec\":{\"containers\":[{\"name\":\"main\","
			    "\"resources\":{}}]}}"),
		NULL, NULL);
	char want[512], *got;

	assert_string_equal(answer->refusal.text, "");
	assert_int_equal(json_array_size(answer->templates), 1);
	assert_string_equal(sl_kube_text_at(json_array_get(answer->templates, 0),
				    "metadata", "namespace", NULL),
		"team");
	(void)snprintf(want, sizeof(want),
		"[{\"op\":\"add\",\"path\":\"/spec/resourceClaims\",\"value\":[{\"name\":"
		"\"sluice-gpu\",\"resourceClaimTemplateName\":\"%s\"}]},{\"op\":\"add\","
		"\"path\":\"/spec/containers/0/resources/claims\",\"value\":[{\"name\":"
		"\"sluice-gpu\"}]}]",
		template_name(0));
	got = patch_text();
	assert_string_equal(got, want);
	free(got);
	assert_true(json_is_true(sl_kube_at(last.response, "response", "allowed", NULL)));
}

/* Existing lists are added to; several containers have several claims. */
static void lists_are_added_to(void **state)
{
	char *got;

	(void)answer_to(
		REVIEW(POD, "{\"metadata\":{\"annotations\":{\"nvidia.com/"
			    "container.b.gpu-memory.limit\":\"2Gi\",\"nvidia.com/"
			    "container.a.gpu-memory.limit\":\"1Gi\"}},\"spec\":{"
			    "\"resourceClaims\":[{\"name\":\"net\"}],\"containers\":[{"
			    "\"name\":\"a\"},{\"name\":\"b\",\"resources\":{\"claims\":[{"
			    "\"name\":\"net\"}]}}]}}"),
		NULL, NULL);
	assert_string_equal(last.answer.refusal.text, "");
	assert_int_equal(json_array_size(last.answer.templates), 2);
	got = patch_text();
	assert_non_null(strstr(got, "\"/spec/resourceClaims/-\",\"value\":{\"name\":"
				    "\"sluice-gpu-0\""));
	assert_non_null(strstr(got, "\"/spec/resourceClaims/-\",\"value\":{\"name\":"
				    "\"sluice-gpu-1\""));
	assert_non_null(strstr(got, "\"/spec/containers/0/resources\",\"value\":{"
				    "\"claims\":[{\"name\":\"sluice-gpu-0\"}]}"));
	assert_non_null(strstr(got, "\"/spec/containers/1/resources/claims/-\",\"value\":"
				    "{\"name\":\"sluice-gpu-1\"}"));
	free(got);
}

/* A pod that was copied from one of ours, or one with another claim. */
static void claims_of_ours(void **state)
{
	char text[1024], name[64];

	(void)answer_to(REVIEW(POD, "{" HALF ",\"spec\":{\"containers\":[{\"name\":"
				    "\"main\"}]}}"),
		NULL, NULL);
	(void)snprintf(name, sizeof(name), "%s", template_name(0));
	(void)snprintf(text, sizeof(text),
		REVIEW(POD, "{" HALF
			    ",\"spec\":{\"resourceClaims\":[{\"name\":\"sluice-gpu\","
			    "\"resourceClaimTemplateName\":\"%s\"}],\"containers\":[{"
			    "\"name\":\"main\",\"resources\":{\"claims\":[{\"name\":"
			    "\"sluice-gpu\"}]}}]}}"),
		name);
	(void)answer_to(text, NULL, NULL);
	assert_string_equal(last.answer.refusal.text, "");
	assert_null(last.answer.patch);
	(void)snprintf(text, sizeof(text),
		REVIEW(POD, "{" HALF
			    ",\"spec\":{\"resourceClaims\":[{\"name\":\"sluice-gpu\","
			    "\"resourceClaimTemplateName\":\"%s\"}],\"containers\":[{"
			    "\"name\":\"main\"}]}}"),
		"sluice-0000000000000000");
	(void)answer_to(text, NULL, NULL);
	assert_non_null(
		strstr(last.answer.refusal.text, "has a claim \"sluice-gpu\" already"));
	assert_null(last.answer.templates);
}

#define OURS_SPEC                                                   \
	"{\"devices\":{\"requests\":[{\"name\":\"g\",\"exactly\":{" \
	"\"deviceClassName\":\"gpu.sluice.dev\"}}]}}"
#define OTHERS_SPEC                                                 \
	"{\"devices\":{\"requests\":[{\"name\":\"n\",\"exactly\":{" \
	"\"deviceClassName\":\"net.example.com\"}}]}}"

static void claims_besides(void **state)
{
	static const char pod[] = REVIEW(POD,
		"{" HALF ",\"spec\":{\"resourceClaims\":[{\"name\":\"a\","
		"\"resourceClaimTemplateName\":\"t\"},{\"name\":\"b\","
		"\"resourceClaimName\":\"c\"},{\"name\":\"odd\",\"resourceClaimName\":"
		"\"../../x\"}],\"containers\":[{\"name\":\"main\"}]}}");
	json_t *paths;

	(void)answer_to(pod, NULL,
		"{\"" LOOK_UP
		"resourceclaimtemplates/t\":{\"spec\":{\"spec\":" OTHERS_SPEC
		"}},\"" LOOK_UP "resourceclaims/c\":{\"spec\":" OTHERS_SPEC "}}");
	assert_string_equal(last.answer.refusal.text, "");
	paths = sl_admit_look_ups(&last.is);
	assert_int_equal(json_array_size(paths), 2);
	assert_string_equal(json_string_value(json_array_get(paths, 0)),
		LOOK_UP "resourceclaimtemplates/t");
	json_decref(paths);
	(void)answer_to(pod, NULL,
		"{\"" LOOK_UP "resourceclaimtemplates/t\":{\"spec\":{\"spec\":" OURS_SPEC
		"}}}");
	assert_non_null(strstr(last.answer.refusal.text, "the pod's claim \"a\" has a "
							 "GPU"));
	(void)answer_to(
		pod, NULL, "{\"" LOOK_UP "resourceclaims/c\":{\"spec\":" OURS_SPEC "}}");
	assert_non_null(strstr(last.answer.refusal.text, "the pod's claim \"b\""));
	(void)answer_to(pod, NULL, NULL);
	assert_string_equal(last.answer.refusal.text, "");
	/* A name like ours is another claim all the same. */
	(void)answer_to(REVIEW(POD, "{" HALF ",\"spec\":{\"resourceClaims\":[{\"name\":"
				    "\"sluice-gpu-0\",\"resourceClaimName\":\"c\"}],"
				    "\"containers\":[{\"name\":\"main\"}]}}"),
		NULL, "{\"" LOOK_UP "resourceclaims/c\":{\"spec\":" OURS_SPEC "}}");
	assert_non_null(strstr(last.answer.refusal.text, "claim \"sluice-gpu-0\" has a"));
}

static void refusals_are_told(void **state)
{
	(void)answer_to(
		REVIEW(POD,
			"{\"metadata\":{\"annotations\":{\"gpu-memory\":"
			"\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
			"\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
			"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9x\xc3\xa9\xc3\xa9\"}},"
			"\"spec\":{\"containers\":[{\"name\":\"main\"}]}}"),
		NULL, NULL);
	assert_true(
		json_is_false(sl_kube_at(last.response, "response", "allowed", NULL)));
	assert_non_null(strstr(
		sl_kube_text_at(last.response, "response", "status", "message", NULL),
		"without a unit"));
	assert_int_equal(json_integer_value(sl_kube_at(
				 last.response, "response", "status", "code", NULL)),
		403);
	(void)answer_to(REVIEW(POD, "{" HALF ",\"spec\":{\"containers\":[{\"name\":"
				    "\"main\"}]}}"),
		"{\"metadata\":{\"name\":\"team\",\"annotations\":{\"sluice.dev/"
		"max-request\":\"4Gi\"}}}",
		NULL);
	assert_non_null(strstr(
		last.answer.refusal.text, "container main: a request of 8Gi is more"));
	assert_null(last.answer.patch);
}

static void claims_are_checked(void **state)
{
	static const char bad[] =
		"{\"devices\":{\"requests\":[{\"name\":\"g\",\"exactly\":{"
		"\"deviceClassName\":\"gpu.sluice.dev\",\"capacity\":{\"requests\":{"
		"\"memory\":\"6Gi\",\"memoryLimit\":\"4Gi\"}}}}]}}";
	char text[1024];

	(void)snprintf(text, sizeof(text), REVIEW(CLAIM, "{\"spec\":%s}"), bad);
	(void)answer_to(text, NULL, NULL);
	assert_non_null(strstr(last.answer.refusal.text, "is below memory"));
	(void)snprintf(
		text, sizeof(text), REVIEW(TEMPLATE, "{\"spec\":{\"spec\":%s}}"), bad);
	(void)answer_to(text, NULL, NULL);
	assert_non_null(strstr(last.answer.refusal.text, "is below memory"));
	(void)answer_to(REVIEW(CLAIM, "{\"spec\":" OURS_SPEC "}"), NULL, NULL);
	assert_string_equal(last.answer.refusal.text, "");
	(void)answer_to(REVIEW(CLAIM, "{\"spec\":" OTHERS_SPEC "}"), NULL, NULL);
	assert_false(sl_admit_concerns(&last.is));
}

static void warnings_are_told(void **state)
{
	(void)answer_to(
		REVIEW(POD, "{\"metadata\":{\"annotations\":{\"gpu-memory\":\"65536\"}},"
			    "\"spec\":{\"containers\":[{\"name\":\"main\"}]}}"),
		NULL, NULL);
	assert_string_equal(last.answer.refusal.text, "");
	assert_non_null(strstr(
		json_string_value(json_array_get(
			sl_kube_at(last.response, "response", "warnings", NULL), 0)),
		"no GPU of the cluster has 64Gi now"));
}

/* Which reads no alternatives: told at once, not by a pod that stays Pending. */
static void our_scheduler(void **state)
{
	static const char pod[] = REVIEW(POD,
		"{" HALF ",\"spec\":{\"schedulerName\":\"sluice\",\"containers\":[{"
		"\"name\":\"main\"}]}}");

	(void)answer_to(pod, NULL, NULL);
	assert_string_equal(last.answer.refusal.text, "");
	sizes = &two_sizes;
	(void)answer_to(pod, NULL, NULL);
	assert_non_null(strstr(last.answer.refusal.text, "ask for amounts"));
	assert_null(last.answer.templates);
	(void)answer_to(REVIEW(POD, "{" HALF ",\"spec\":{\"containers\":[{\"name\":"
				    "\"main\"}]}}"),
		NULL, NULL);
	assert_string_equal(last.answer.refusal.text, "");
	sizes = &one_size;
}

static void others_pass(void **state)
{
	static const char *const texts[] = {
		REVIEW(POD, "{\"spec\":{\"containers\":[{\"name\":\"main\"}]}}"),
		REVIEW("\"group\":\"apps\",\"kind\":\"Pod\"",
			"{" HALF ",\"spec\":{\"containers\":[{\"name\":\"main\"}]}}"),
		REVIEW(POD, "null"), REVIEW(POD, "[]")};

	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++) {
		(void)answer_to(texts[i], NULL, NULL);
		assert_false(sl_admit_concerns(&last.is));
		assert_true(json_is_true(
			sl_kube_at(last.response, "response", "allowed", NULL)));
		assert_null(sl_kube_at(last.response, "response", "patch", NULL));
	}
}

static void no_reviews(void **state)
{
	static const char *const texts[] = {"{}", "[]",
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\"}",
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"
		"v1beta1\",\"request\":{\"uid\":\"u\"}}",
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
		"\"request\":{\"uid\":\"u\",\"namespace\":\"a/b\"}}"};

	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++) {
		json_t *json = json_loads(texts[i], 0, NULL);
		struct sl_admit_review is;
		struct sl_error err = {0};

		assert_int_equal(sl_admit_read(json, &is, &err), SL_ADMIT_BAD);
		assert_true(err.text[0]);
		json_decref(json);
	}
}

static void uids_are_found(void **state)
{
	static const struct {
		const char *text, *uid;
	} rows[] = {
		{"{\"kind\":\"x\",\"request\":{\"uid\":\"705ab4f5-6393-11e8\",[[[",
			"705ab4f5-6393-11e8"},
		{"{\"request\":{\"uid\":\"a\"}},{\"request\":{\"uid\":\"b\"}}", "a"},
		{"{\"request\":{\"uid\":\"\"}}", NULL},
		{"{\"request\":{\"uid\":\"a", NULL},
		{"{\"request\":{\"uid\":\"a\\u0000\"}}", NULL},
		{"{\"request\":{\"kind\":{},\"uid\":\"a\"}}", NULL},
		{"", NULL},
	};
	char uid[64], text[128];

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		bool found = sl_admit_find_uid(rows[i].text, uid);

		if (found != (rows[i].uid != NULL) ||
			(found && strcmp(uid, rows[i].uid) != 0))
			fail_msg("%s: %s", rows[i].text, found ? uid : "none");
	}
	for (int length = 63; length <= 64; length++) {
		(void)snprintf(
			text, sizeof(text), "\"request\":{\"uid\":\"%0*d\"", length, 7);
		assert_int_equal(sl_admit_find_uid(text, uid), length == 63);
	}
}

static int clean(void **state)
{
	forget();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pod_gets_a_claim),
		cmocka_unit_test(lists_are_added_to),
		cmocka_unit_test(claims_of_ours),
		cmocka_unit_test(claims_besides),
		cmocka_unit_test(refusals_are_told),
		cmocka_unit_test(claims_are_checked),
		cmocka_unit_test(warnings_are_told),
		cmocka_unit_test(our_scheduler),
		cmocka_unit_test(others_pass),
		cmocka_unit_test(no_reviews),
		cmocka_unit_test(uids_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, clean);
}
