/* ask: runs the loop until the answer is there. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kubectl/kubectl.h"

/* Enough for lists with long objects. */
#define PAGE_BYTES (32u << 20)

int kubectl_fail(const char *format, ...)
{
	va_list args;

	(void)fputs("kubectl sluice: ", stderr);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fputc('\n', stderr);
	return EXIT_FAILURE;
}

struct asked {
	json_t *body;
	struct sl_error *err;
	int status;
	bool is_done;
};

static void on_answer(void *context, const struct sl_kube_answer *answer)
{
	struct asked *asked = context;

	asked->is_done = true;
	if (answer->error[0]) {
		sl_error_set(asked->err, "%s", answer->error);
		asked->status = answer->status ? answer->status : -1;
	} else {
		asked->body = json_incref(answer->body);
	}
}

int kubectl_ask(struct kubectl *k, enum sl_kube_verb verb, const char *path,
	const json_t *body, json_t **out, struct sl_error *err)
{
	struct asked asked = {.err = err};
	int r = sl_kube_call(k->kube,
		&(struct sl_kube_request){.verb = verb,
			.path = path,
			.body = body,
			.done = on_answer,
			.context = &asked,
			.max_bytes = PAGE_BYTES},
		NULL);

	*out = NULL;
	while (r >= 0 && !asked.is_done)
		r = sd_event_run(k->loop, UINT64_MAX);
	if (r < 0) {
		sl_error_set(err, "cannot ask the API server: %s", strerror(-r));
		return -1;
	}
	*out = asked.body;
	return asked.status;
}

int kubectl_list(struct kubectl *k, const char *path, json_t **out, struct sl_error *err)
{
	json_t *all = json_array(), *page = NULL;
	char where[2560], from[2048] = "";
	int r;

	do {
		(void)snprintf(where, sizeof(where), "%s%climit=250%s%s", path,
			strchr(path, '?') ? '&' : '?', from[0] ? "&continue=" : "", from);
		r = kubectl_ask(k, SL_KUBE_GET, where, NULL, &page, err);
		if (r == 0 && all)
			(void)json_array_extend(all, json_object_get(page, "items"));
		(void)snprintf(from, sizeof(from), "%s",
			sl_kube_text_at(page, "metadata", "continue", NULL));
		json_decref(page);
	} while (r == 0 && from[0]);
	if (r != 0) {
		json_decref(all);
		all = NULL;
	}
	*out = all;
	return r;
}

int kubectl_open(struct kubectl *k, const char *kubeconfig, const char *context,
	char **namespace, struct sl_error *err)
{
	struct sl_kube_config config = {0};
	int r = sl_kube_config_choose(&config, kubeconfig, context, err);

	if (r < 0)
		return r;
	*namespace = config.namespace;
	config.namespace = NULL;
	r = sd_event_new(&k->loop);
	if (r < 0)
		sl_kube_config_fini(&config);
	else
		r = sl_kube_new(&k->kube, k->loop, &config);
	if (r < 0)
		sl_error_set(err, "cannot speak with the API server: %s", strerror(-r));
	return r < 0 ? r : 0;
}

void kubectl_close(struct kubectl *k)
{
	k->kube = sl_kube_free(k->kube);
	k->loop = sd_event_unref(k->loop);
}
