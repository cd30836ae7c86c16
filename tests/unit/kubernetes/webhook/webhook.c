/* The webhook between an API server that calls and one that is called: certificates, reviews, and
 * clients that do as they please. */
#include "../server.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <gnutls/gnutls.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/kubernetes/webhook/webhook.h"
#include "cluster/kubernetes/webhook/certs.h"
#include "cluster/kubernetes/webhook/keys.h"

#define SECRET    "/api/v1/namespaces/sluice/secrets/sluice-webhook"
#define HOOK      "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/sluice"
#define TEMPLATES "/apis/resource.k8s.io/v1/namespaces/team/resourceclaimtemplates"
#define LIMIT     (30 * SL_S)

/* What the API server has; under its lock. */
static struct {
	json_t *secret, *hook;
	unsigned int version;
	json_t *other_secret; /* the next PUT is a conflict: another replica wrote this */
	unsigned int templates_status;
	json_t *template; /* the latest */
	bool keeps_template;
	bool has_bundle; /* all three */
	/* The next list has this one: a watch that is behind. */
	json_t *former_secret;
	bool drops_bundle; /* another writer takes it out at once */
} api;

static sd_event *event;
static struct sl_webhook *webhook;
static const char *bundle_path;

/* --- the API server ------------------------------------------------------------------------ */

static char *dump(const json_t *json)
{
	return json_dumps(json, JSON_COMPACT);
}

static void set_version(json_t *object)
{
	char version[16];

	(void)snprintf(version, sizeof(version), "%u", ++api.version);
	assert_int_equal(json_object_set_new(json_object_get(object, "metadata"),
				 "resourceVersion", json_string(version)),
		0);
}

static char *modified(void)
{
	char *object = dump(api.secret);
	char *line = text("{\"type\":\"MODIFIED\",\"object\":%s}\n", object);

	free(object);
	return line;
}

/* Pushed data goes to the secret's watch, which also has what it missed. */
static void list(struct exchange *exchange, const json_t *item, bool is_secret)
{
	char *one;

	if (query(exchange, "watch")) {
		const char *from = query(exchange, "resourceVersion");
		bool missed = strtoul(from, NULL, 10) < api.version;

		exchange->how = is_secret ? STREAM : HANG;
		exchange->text = is_secret && missed ? modified() : text("%s", "");
		return;
	}
	one = item ? dump(item) : text("%s", "");
	exchange->text =
		text("{\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[%s]}",
			api.version, one);
	free(one);
}

static void put_secret(struct exchange *exchange)
{
	json_t *body = json_loads(exchange->body, 0, NULL);
	const char *version = sl_kube_text_at(body, "metadata", "resourceVersion", NULL);
	char *pushed;

	if (api.other_secret) {
		json_decref(api.secret);
		api.secret = sl_steal(&api.other_secret);
		set_version(api.secret);
	}
	if (strcmp(version, sl_kube_text_at(api.secret, "metadata", "resourceVersion",
				    NULL)) != 0) {
		exchange->status = 409;
		exchange->text = text("{\"reason\":\"Conflict\",\"message\":\"other\"}");
		json_decref(body);
	} else {
		json_decref(api.secret);
		api.secret = body;
		set_version(api.secret);
		exchange->text = dump(api.secret);
	}
	pushed = modified();
	stream_push(pushed);
	free(pushed);
}

static void patch_hook(struct exchange *exchange)
{
	json_t *body = json_loads(exchange->body, 0, NULL), *webhooks, *one;
	size_t i, k;
	json_t *mine;

	assert_non_null(strstr(exchange->content_type, "strategic"));
	webhooks = json_object_get(body, "webhooks");
	json_array_foreach(webhooks, i, one)
	{
		if (api.drops_bundle)
			break;
		json_array_foreach(json_object_get(api.hook, "webhooks"), k, mine)
		{
			if (strcmp(sl_kube_text_at(one, "name", NULL),
				    sl_kube_text_at(mine, "name", NULL)) == 0)
				assert_int_equal(
					json_object_update(
						json_object_get(mine, "clientConfig"),
						json_object_get(one, "clientConfig")),
					0);
		}
	}
	api.has_bundle = json_array_size(webhooks) > 0;
	json_decref(body);
	set_version(api.hook);
	exchange->text = dump(api.hook);
}

static bool is_template(const char *path)
{
	size_t size = strlen(TEMPLATES "/");

	return strncmp(path, TEMPLATES "/", size) == 0 &&
	       strcmp(path + size,
		       sl_kube_text_at(api.template, "metadata", "name", NULL)) == 0;
}

static void serve(struct exchange *exchange)
{
	static const char slice[] =
		"{\"metadata\":{\"name\":\"n1\",\"uid\":\"s\",\"resourceVersion\":\"1\"},"
		"\"spec\":{\"driver\":\"gpu.sluice.dev\",\"devices\":[{\"name\":\"gpu-"
		"a\","
		"\"capacity\":{\"memory\":{\"value\":\"16Gi\"}}}]}}";
	const char *path = exchange->path;
	json_t *item = NULL;

	if (strcmp(path, "/apis/resource.k8s.io/v1/resourceslices") == 0) {
		item = json_loads(slice, 0, NULL);
		list(exchange, item, false);
		json_decref(item);
	} else if (strcmp(path, "/api/v1/namespaces/sluice/secrets") == 0) {
		item = query(exchange, "watch") ? NULL : sl_steal(&api.former_secret);
		list(exchange, item ? item : api.secret, true);
		json_decref(item);
	} else if (strcmp(path, "/apis/admissionregistration.k8s.io/v1/"
				"mutatingwebhookconfigurations") == 0) {
		list(exchange, api.hook, false);
	} else if (strcmp(path, SECRET) == 0 && strcmp(exchange->method, "GET") == 0) {
		exchange->text = dump(api.secret);
	} else if (strcmp(path, SECRET) == 0) {
		put_secret(exchange);
	} else if (strcmp(path, HOOK) == 0) {
		patch_hook(exchange);
	} else if (strcmp(path, "/api/v1/namespaces/team") == 0) {
		exchange->text = text("{\"metadata\":{\"name\":\"team\"}}");
	} else if (strcmp(path, "/api/v1/namespaces/slow") == 0) {
		exchange->how = HANG;
	} else if (strcmp(path, TEMPLATES) == 0) {
		exchange->status = api.templates_status;
		exchange->text = text("{\"message\":\"told\"}");
		if (api.keeps_template)
			return;
		json_decref(api.template);
		api.template = json_loads(exchange->body, 0, NULL);
	} else if (is_template(path)) {
		exchange->text = dump(api.template);
	} else {
		exchange->status = 404;
		exchange->text = text("{\"message\":\"nothing\"}");
	}
}

/* --- the caller ---------------------------------------------------------------------------- */

struct client {
	const char *path, *body;
	const char *authorities; /* a file; NULL: does not look */
	bool is_get;
	unsigned int pause_s; /* calls again after that, where it is given */
	bool is_slow;         /* never sends the body */
	pthread_t thread;
	atomic_bool done;
	long status, connects; /* of the latest call */
	char answer[65536];
	size_t used;
	char error[CURL_ERROR_SIZE];
	char certificate[4096]; /* PEM, that it was served with */
};

static size_t take(char *data, size_t one, size_t size, void *context)
{
	struct client *client = context;

	if (client->used + size < sizeof(client->answer)) {
		memcpy(client->answer + client->used, data, size);
		client->used += size;
	}
	return size;
}

static size_t send_nothing(char *data, size_t one, size_t size, void *context)
{
	return CURL_READFUNC_PAUSE;
}

static void note_certificate(CURL *easy, struct client *client)
{
	struct curl_certinfo *info = NULL;

	if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &info) != CURLE_OK || !info ||
		info->num_of_certs < 1)
		return;
	for (struct curl_slist *at = info->certinfo[0]; at; at = at->next)
		if (strncmp(at->data, "Cert:", 5) == 0)
			(void)snprintf(client->certificate, sizeof(client->certificate),
				"%s", at->data + 5);
}

static void *call(void *context)
{
	struct client *client = context;
	CURL *easy = curl_easy_init();
	char url[128];

	(void)snprintf(url, sizeof(url), "https://127.0.0.1:%u%s",
		sl_webhook_port(webhook), client->path);
	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT, 25L);
	(void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->error);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
	if (client->authorities) {
		(void)curl_easy_setopt(easy, CURLOPT_CAINFO, client->authorities);
	} else {
		(void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		(void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (!client->is_get) {
		(void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
		(void)curl_easy_setopt(
			easy, CURLOPT_POSTFIELDSIZE, (long)strlen(client->body));
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, client->body);
	}
	if (client->is_slow) {
		(void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, send_nothing);
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
		(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 100L);
	}
	(void)curl_easy_setopt(easy, CURLOPT_CERTINFO, 1L);
	(void)curl_easy_perform(easy);
	if (client->pause_s) {
		(void)sleep(client->pause_s);
		(void)curl_easy_perform(easy);
	}
	(void)curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &client->connects);
	note_certificate(easy, client);
	(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &client->status);
	curl_easy_cleanup(easy);
	atomic_store(&client->done, true);
	return NULL;
}

static bool is_done(void *context)
{
	return atomic_load(&((struct client *)context)->done);
}

static struct client client;

/* The status of the answer; its text is in client.answer. */
static long post(const char *path, const char *body, const char *authorities)
{
	client = (struct client){
		.path = path, .body = body, .is_get = !body, .authorities = authorities};
	assert_int_equal(pthread_create(&client.thread, NULL, call, &client), 0);
	(void)run_while(event, is_done, &client, LIMIT);
	(void)pthread_join(client.thread, NULL);
	client.answer[client.used] = '\0';
	return client.status;
}

/* The response of a review, a new reference. */
static json_t *review(const char *annotations, bool is_dry_run)
{
	char *body = text(
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
		"\"request\":{\"uid\":\"u-1\",\"operation\":\"CREATE\",\"namespace\":"
		"\"team\",\"dryRun\":%s,\"kind\":{\"group\":\"\",\"kind\":\"Pod\"},"
		"\"object\":{\"metadata\":{\"annotations\":{%s}},\"spec\":{"
		"\"containers\":"
		"[{\"name\":\"main\",\"resources\":{}}]}}}}",
		is_dry_run ? "true" : "false", annotations);
	long status = post("/review", body, NULL);
	json_t *json;

	free(body);
	if (status != 200)
		fail_msg("%ld %s (%s)", status, client.answer, client.error);
	json = json_loads(client.answer, 0, NULL);
	assert_non_null(json);
	return json;
}

static bool is_allowed(const char *annotations)
{
	json_t *json = review(annotations, false);
	bool allowed = json_is_true(sl_kube_at(json, "response", "allowed", NULL));

	json_decref(json);
	return allowed;
}

/* --- set-up -------------------------------------------------------------------------------- */

/* PEM of a key of the Secret, or of the bundle; the caller frees. */
static char *decoded(const char *coded)
{
	gnutls_datum_t in = {(unsigned char *)(uintptr_t)coded, (unsigned)strlen(coded)};
	gnutls_datum_t out = {0};
	char *plain;

	assert_int_equal(gnutls_base64_decode2(&in, &out), 0);
	plain = strndup((const char *)out.data, out.size);
	gnutls_free(out.data);
	return plain;
}

static char *bundle(void)
{
	const json_t *first;
	char *plain;

	server_lock();
	first = json_array_get(json_object_get(api.hook, "webhooks"), 0);
	plain = decoded(sl_kube_text_at(first, "clientConfig", "caBundle", NULL));
	server_unlock();
	return plain;
}

static char *certificate(void)
{
	char *plain;

	server_lock();
	plain = decoded(sl_kube_text_at(api.secret, "data", "tls.crt", NULL));
	server_unlock();
	return plain;
}

/* Whether two PEM texts have the same lines. */
static bool is_same_pem(const char *a, const char *b)
{
	for (;;) {
		a += strspn(a, "\r\n");
		b += strspn(b, "\r\n");
		if (*a != *b || !*a)
			return *a == *b;
		a++;
		b++;
	}
}

/* It serves, with what the Secret has, and the bundle vouches for that. */
static bool serves(void)
{
	char *authorities = bundle(), *mine = certificate();
	bool is_mine;
	long status;

	assert_int_equal(
		sl_file_replace(bundle_path, authorities, strlen(authorities), false), 0);
	status = post("/healthz", NULL, bundle_path);
	is_mine = is_same_pem(client.certificate, mine);

	free(authorities);
	free(mine);
	if (status != 200 || !is_mine)
		print_message("%ld %s %s\n", status, client.error, client.certificate);
	return status == 200 && is_mine;
}

/* For a moment the Secret may be newer than the served certificate. */
static bool serves_soon(void)
{
	sl_ns end = sl_clock_now() + LIMIT;

	while (!serves())
		if (sl_clock_now() > end)
			return false;
	return true;
}

static bool has_bundle(void *context)
{
	bool has;

	server_lock();
	has = api.has_bundle;
	server_unlock();
	return has;
}

static json_t *empty_secret(void)
{
	return json_loads("{\"metadata\":{\"name\":\"sluice-webhook\",\"namespace\":"
			  "\"sluice\",\"uid\":\"x\",\"resourceVersion\":\"1\"}}",
		0, NULL);
}

static void start(void)
{
	struct sl_kube_config config = server_config();
	struct sl_error err = {0};

	if (sl_webhook_new(&webhook, event, &config, "127.0.0.1:0", &err) < 0)
		fail_msg("%s", err.text);
}

static int set_up(void **state)
{
	api.secret = empty_secret();
	api.version = 1;
	api.templates_status = 201;
	api.keeps_template = false;
	api.has_bundle = api.drops_bundle = false;
	api.hook = json_loads(
		"{\"metadata\":{\"name\":\"sluice\",\"uid\":\"h\",\"resourceVersion\":"
		"\"1\"},\"webhooks\":[{\"name\":\"a\",\"clientConfig\":{\"url\":"
		"\"https://127.0.0.1:8443/review\"}},{\"name\":\"b\",\"clientConfig\":{"
		"\"service\":{\"name\":\"s\",\"namespace\":\"n\"}}},{\"name\":\"c\","
		"\"clientConfig\":{\"url\":\"https://127.0.0.1:8443/review\"}}]}",
		0, NULL);
	server_start(serve);
	bundle_path = server_path("bundle.pem");
	assert_true(sd_event_new(&event) >= 0);
	return 0;
}

static int tear_down(void **state)
{
	webhook = sl_webhook_free(webhook);
	event = sd_event_unref(event);
	server_stop();
	json_decref(sl_steal(&api.secret));
	json_decref(sl_steal(&api.hook));
	json_decref(sl_steal(&api.template));
	json_decref(sl_steal(&api.other_secret));
	json_decref(sl_steal(&api.former_secret));
	return 0;
}

static void begin(void)
{
	start();
	assert_true(run_while(event, has_bundle, NULL, LIMIT));
}

/* --- tests --------------------------------------------------------------------------------- */

static void certificates_are_made_and_told(void **state)
{
	begin();
	assert_true(serves());
	assert_int_equal(server_count("PUT", SECRET), 1);
	assert_int_equal(server_count("PATCH", HOOK), 1);
	/* The next one takes them as they are. */
	webhook = sl_webhook_free(webhook);
	start();
	assert_true(serves());
	assert_int_equal(server_count("PUT", SECRET), 1);
	assert_int_equal(server_count("PATCH", HOOK), 1);
}

static void reviews_are_answered(void **state)
{
	json_t *json;

	begin();
	json = review("\"gpu-fraction\":\"0.5\"", false);
	assert_true(json_is_true(sl_kube_at(json, "response", "allowed", NULL)));
	assert_string_equal(
		sl_kube_text_at(json, "response", "patchType", NULL), "JSONPatch");
	json_decref(json);
	assert_int_equal(server_count("POST", TEMPLATES), 1);
	server_lock();
	assert_string_equal(
		sl_kube_text_at(
			json_object_get(
				json_array_get(sl_kube_at(api.template, "spec", "spec",
						       "devices", "requests", NULL),
					0),
				"exactly"),
			"capacity", "requests", "memory", NULL),
		"8Gi");
	server_unlock();
	json = review("\"gpu-fraction\":\"0.5\"", true);
	assert_true(json_is_true(sl_kube_at(json, "response", "allowed", NULL)));
	json_decref(json);
	assert_int_equal(server_count("POST", TEMPLATES), 1);
	assert_true(is_allowed("\"team\":\"a\""));
	assert_false(is_allowed("\"gpu-fraction\":\"half\""));
	assert_int_equal(server_count("POST", TEMPLATES), 1);
}

static void templates_that_cannot_be_made(void **state)
{
	json_t *json;

	begin();
	server_lock();
	api.templates_status = 409;
	server_unlock();
	assert_true(is_allowed("\"gpu-fraction\":\"0.5\""));
	server_lock();
	api.templates_status = 500;
	server_unlock();
	json = review("\"gpu-fraction\":\"0.5\"", false);
	assert_true(json_is_false(sl_kube_at(json, "response", "allowed", NULL)));
	assert_null(sl_kube_at(json, "response", "patch", NULL));
	assert_int_equal(
		json_integer_value(sl_kube_at(json, "response", "status", "code", NULL)),
		503);
	assert_non_null(
		strstr(sl_kube_text_at(json, "response", "status", "message", NULL),
			"ResourceClaimTemplate cannot be made"));
	json_decref(json);
}

/* Any user who may make templates in the namespace may have made one of that name. */
static void template_of_another(void **state)
{
	json_t *json;
	char *answer;

	begin();
	assert_true(is_allowed("\"gpu-fraction\":\"0.5\""));
	server_lock();
	api.templates_status = 409;
	api.keeps_template = true;
	server_unlock();
	assert_true(is_allowed("\"gpu-fraction\":\"0.5\""));
	server_lock();
	(void)json_object_set_new(
		sl_kube_at(api.template, "spec", "spec", "devices", NULL), "config",
		json_array());
	server_unlock();
	json = review("\"gpu-fraction\":\"0.5\"", false);
	answer = dump(json);
	assert_non_null(strstr(answer, "\"allowed\":false"));
	assert_non_null(strstr(answer, "asks for something else than the pod"));
	assert_non_null(strstr(answer, "\"code\":403"));
	free(answer);
	json_decref(json);
	/* It is deleted in that moment. */
	server_lock();
	(void)json_object_clear(api.template);
	server_unlock();
	json = review("\"gpu-fraction\":\"0.5\"", false);
	answer = dump(json);
	assert_non_null(strstr(answer, "\"code\":503"));
	free(answer);
	json_decref(json);
}

static void calls_that_are_none(void **state)
{
	size_t size = 11u << 20;
	char *large = malloc(size + 1);

	assert_non_null(large);
	memset(large, ' ', size);
	large[size] = '\0';
	begin();
	assert_int_equal(post("/review", "no JSON", NULL), 400);
	assert_non_null(strstr(client.answer, "no JSON"));
	assert_int_equal(post("/review", "", NULL), 400);
	assert_int_equal(post("/review", "{\"kind\":\"Pod\"}", NULL), 400);
	assert_non_null(strstr(client.answer, "no AdmissionReview"));
	assert_int_equal(post("/review", large, NULL), 400);
	assert_non_null(strstr(client.answer, "too large"));
	assert_int_equal(post("/review", NULL, NULL), 405);
	assert_int_equal(post("/other", "{}", NULL), 404);
	large[10u << 20] = '\0';
	assert_int_equal(post("/review", large, NULL), 400);
	assert_true(serves());
	free(large);
}

#define HEAD                                                                    \
	"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\"," \
	"\"request\":{\"uid\":\"u-1\",\"operation\":\"CREATE\",\"namespace\":"  \
	"\"team\",\"kind\":{\"group\":\"resource.k8s.io\",\"kind\":"            \
	"\"ResourceClaim\"},\"object\":{\"spec\":{\"devices\":{\"requests\":["  \
	"{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"gpu.sluice.dev\"}}" \
	"]}},\"filler\":"
#define TAIL "}}}"

/* HEAD, part as often as fits into size, TAIL. The caller frees. */
static char *large_review(const char *begin, const char *part, size_t size, char *end)
{
	size_t used = strlen(HEAD) + strlen(begin);
	char *body = malloc(used + size + strlen(end) + sizeof(TAIL));

	assert_non_null(body);
	strcpy(strcpy(body, HEAD) + strlen(HEAD), begin);
	for (size = used + size; used + strlen(part) <= size; used += strlen(part))
		strcpy(body + used, part);
	strcpy(strcpy(body + used, end) + strlen(end), TAIL);
	return body;
}

/* The API server admits claims whose review fails. So every claim that it can store must be
 * answered. */
static void large_claims(void **state)
{
	static const struct {
		const char *begin, *part;
		size_t size;
		char *end;
		const char *words;
	} rows[] = {
		/* "<" is written in six bytes, of 1.5 MiB. */
		{"\"", "\\u003c", 9 * SL_MIB, "\"", "\"allowed\":true"},
		{"[", "{},", 3 * SL_MIB, "0]", "more than 200000 values"},
		{"[", "nothing", 1, "", "it is no JSON"},
		{"\"", " ", 11 * SL_MIB, "\"", "it is too large"},
	};

	begin();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char *body = large_review(
			rows[i].begin, rows[i].part, rows[i].size, rows[i].end);

		assert_int_equal(post("/review", body, NULL), 200);
		assert_non_null(strstr(client.answer, "\"uid\":\"u-1\""));
		if (!strstr(client.answer, rows[i].words))
			fail_msg("row %zu: %s", i, client.answer);
		free(body);
	}
}

static bool is_heap_measured(void)
{
	size_t before = mallinfo2().uordblks;
	void *volatile some = malloc(10000);
	size_t after = mallinfo2().uordblks;

	free(some);
	return after > before;
}

static bool have_asked(void *context)
{
	return server_count("GET", "/api/v1/namespaces/slow") >= *(unsigned int *)context;
}

/* As many values as are read take 20 MiB and more, and the reviews wait for the API server. */
static void heavy_claims(void **state)
{
	static struct client heavy[8];
	char *body = large_review("[", "{},", 297000, "0]");
	unsigned int count = 0;

	if (!is_heap_measured()) {
		free(body);
		skip();
	}
	memcpy(strstr(body, "\"team\""), "\"slow\"", 6);
	begin();
	for (; mallinfo2().uordblks <= 64 * SL_MIB; count++) {
		assert_in_range(count, 0, SL_ARRAY_LEN(heavy) - 1);
		heavy[count] = (struct client){.path = "/review", .body = body};
		assert_int_equal(
			pthread_create(&heavy[count].thread, NULL, call, &heavy[count]),
			0);
		assert_true(
			run_while(event, have_asked, &(unsigned int){count + 1}, LIMIT));
	}
	assert_int_equal(post("/review", body, NULL), 200);
	assert_non_null(strstr(client.answer, "\"allowed\":false"));
	assert_non_null(strstr(client.answer, "too much is sent at once"));
	webhook = sl_webhook_free(webhook);
	while (count-- > 0)
		(void)pthread_join(heavy[count].thread, NULL);
	free(body);
}

/* 300 that connect and say nothing leave room for one that does. */
static void silent_clients(void **state)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fds[300];

	begin();
	assert_true(serves());
	address.sin_port = htons(sl_webhook_port(webhook));
	for (size_t i = 0; i < SL_ARRAY_LEN(fds); i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(fds[i] >= 0);
		(void)connect(fds[i], (struct sockaddr *)&address, sizeof(address));
	}
	/* Connections that the kernel dropped come again after a second. */
	for (size_t i = 0; i < SL_ARRAY_LEN(fds); i++) {
		struct pollfd ready = {.fd = fds[i], .events = POLLOUT};

		assert_int_equal(poll(&ready, 1, LIMIT / SL_MS), 1);
	}
	assert_true(serves());
	for (size_t i = 0; i < SL_ARRAY_LEN(fds); i++)
		(void)close(fds[i]);
}

static bool has_another(void *context)
{
	char *now = certificate();
	bool is_another = strcmp(now, context) != 0;

	free(now);
	return is_another;
}

/* As after a restore, or by a person's hand: broken parts are made anew, without a restart. */
static void secret_is_damaged(void **state)
{
	char *before, *pushed;

	begin();
	assert_true(serves());
	before = certificate();
	server_lock();
	(void)json_object_set_new(
		json_object_get(api.secret, "data"), "tls.crt", json_string("bm9uZQ=="));
	set_version(api.secret);
	pushed = modified();
	stream_push(pushed);
	server_unlock();
	free(pushed);
	assert_true(run_while(event, has_another, (void *)(uintptr_t) "none", LIMIT));
	assert_true(serves_soon());
	assert_true(has_another(before));
	free(before);
}

static bool has_asked(void *context)
{
	return server_count("GET", "/api/v1/namespaces/slow") > 0;
}

/* The webhook ends while a review waits for the API server. The caller gets an answer or a closed
 * connection, at once. */
static void ends_in_the_middle(void **state)
{
	begin();
	assert_true(serves());
	client = (struct client){.path = "/review",
		.body = "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"
			"v1\","
			"\"request\":{\"uid\":\"u\",\"operation\":\"CREATE\","
			"\"namespace\":"
			"\"slow\",\"kind\":{\"group\":\"\",\"kind\":\"Pod\"},\"object\":{"
			"\"metadata\":{\"annotations\":{\"gpu-memory\":\"5\"}},\"spec\":{"
			"\"containers\":[{\"name\":\"main\"}]}}}}"};
	assert_int_equal(pthread_create(&client.thread, NULL, call, &client), 0);
	assert_true(run_while(event, has_asked, NULL, LIMIT));
	assert_false(is_done(&client));
	webhook = sl_webhook_free(webhook);
	assert_true(run_while(event, is_done, &client, LIMIT));
	(void)pthread_join(client.thread, NULL);
	assert_null(strstr(client.error, "timed out"));
}

/* Another replica was first: its certificates are taken. */
static void other_replica_wins(void **state)
{
	const char *const names[] = {"127.0.0.1", "s.n.svc", NULL};
	struct sl_webhook_certs certs = {0};
	struct sl_error err = {0};
	const char *texts[4];
	static const char *const keys[] = {"ca.crt", "ca.key", "tls.crt", "tls.key"};
	json_t *data = json_object();
	bool changed = false;
	char *now;

	assert_int_equal(
		sl_webhook_certs_renew(&certs, names, time(NULL), &changed, &err), 0);
	texts[0] = certs.authorities;
	texts[1] = certs.authority_key;
	texts[2] = certs.certificate;
	texts[3] = certs.key;
	for (size_t i = 0; i < 4; i++) {
		gnutls_datum_t in = {
			(unsigned char *)(uintptr_t)texts[i], (unsigned)strlen(texts[i])};
		gnutls_datum_t out = {0};

		assert_int_equal(gnutls_base64_encode2(&in, &out), 0);
		(void)json_object_set_new(
			data, keys[i], json_stringn((const char *)out.data, out.size));
		gnutls_free(out.data);
	}
	api.other_secret = empty_secret();
	(void)json_object_set_new(api.other_secret, "data", data);
	begin();
	assert_true(serves());
	assert_int_equal(server_count("PUT", SECRET), 1);
	now = certificate();
	assert_string_equal(now, certs.certificate);
	free(now);
	sl_webhook_certs_fini(&certs);
}

/* The watch of the Secret is behind: the present bundle stays. */
static void secret_is_seen_late(void **state)
{
	json_t *former;

	begin();
	assert_true(serves());
	webhook = sl_webhook_free(webhook);
	former = api.secret;
	api.secret = empty_secret();
	set_version(api.secret);
	api.has_bundle = false;
	begin();
	assert_true(serves_soon());
	assert_int_equal(server_count("PATCH", HOOK), 2);
	webhook = sl_webhook_free(webhook);
	api.former_secret = former;
	start();
	assert_true(serves_soon());
	assert_int_equal(server_count("PATCH", HOOK), 2);
	assert_int_equal(server_count("PUT", SECRET), 2);
}

static bool is_never(void *context)
{
	return false;
}

/* Two that write the bundle do not chase each other. */
static void bundle_is_dropped(void **state)
{
	api.drops_bundle = true;
	begin();
	(void)run_while(event, is_never, NULL, 2500 * SL_MS);
	assert_in_range(server_count("PATCH", HOOK), 2, 3);
}

/* A connection waits as long as its client likes; a request has to be sent in time. */
static void idle_and_slow_clients(void **state)
{
	struct client idle = {.path = "/review", .body = HEAD "{}" TAIL, .pause_s = 12};
	struct client slow = {.path = "/review", .body = "", .is_slow = true};

	begin();
	assert_true(serves());
	assert_int_equal(pthread_create(&idle.thread, NULL, call, &idle), 0);
	assert_int_equal(pthread_create(&slow.thread, NULL, call, &slow), 0);
	assert_true(run_while(event, is_done, &idle, LIMIT));
	assert_true(run_while(event, is_done, &slow, LIMIT));
	(void)pthread_join(idle.thread, NULL);
	(void)pthread_join(slow.thread, NULL);
	assert_int_equal(idle.status, 200);
	assert_int_equal(idle.connects, 0);
	assert_int_equal(slow.status, 0);
	assert_null(strstr(slow.error, "timed out"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			certificates_are_made_and_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reviews_are_answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			templates_that_cannot_be_made, set_up, tear_down),
		cmocka_unit_test_setup_teardown(template_of_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_are_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(large_claims, set_up, tear_down),
		cmocka_unit_test_setup_teardown(heavy_claims, set_up, tear_down),
		cmocka_unit_test_setup_teardown(silent_clients, set_up, tear_down),
		cmocka_unit_test_setup_teardown(secret_is_damaged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_replica_wins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ends_in_the_middle, set_up, tear_down),
		cmocka_unit_test_setup_teardown(secret_is_seen_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bundle_is_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(idle_and_slow_clients, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
