/*
 * main - the command line of sluice-kube webhook
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/kubernetes/webhook/webhook.h"

#define LISTEN "8443"

enum { EXIT_USAGE = 2 };

struct arguments {
	const char *kubeconfig, *listen;
};

static void help(FILE *out)
{
	(void)fputs(
		"sluice-kube webhook [options]\n"
		"\n"
		"Turns the annotations of pods (gpu-fraction, gpu-memory, "
		"nvidia.com/container.NAME.\n"
		"gpu-memory.request) into claims, and refuses those that cannot be. The "
		"API server\n"
		"calls it by MutatingWebhookConfiguration sluice; see "
		"docs/kubernetes/webhook.yaml.\n"
		"Runs in the foreground; SIGTERM ends it.\n"
		"\n"
		"  --listen [ADDRESS:]PORT  default: " LISTEN ", at all addresses\n"
		"  --kubeconfig FILE        default: the pod's service account, else "
		"KUBECONFIG\n"
		"  --log LEVEL              error, warning, info or debug; default: "
		"info\n"
		"  --help                   print this\n",
		out);
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct arguments *out)
{
	static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
		{"kubeconfig", required_argument, NULL, 'k'},
		{"log", required_argument, NULL, 'L'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'l': out->listen = optarg; break;
		case 'k': out->kubeconfig = optarg; break;
		case 'L':
			if (sl_log_set_level_name(optarg))
				break;
			(void)fprintf(stderr,
				"sluice-kube: --log %s: write error, warning, info or "
				"debug\n",
				optarg);
			return EXIT_USAGE;
		case 'h': help(stdout); return EXIT_SUCCESS;
		default: return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return -1;
	(void)fprintf(stderr,
		"sluice-kube webhook: %s: takes options alone; see --help\n",
		argv[optind]);
	return EXIT_USAGE;
}

static int add_signals(sd_event *loop)
{
	sigset_t signals;
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	/* Without a handler both signals end the loop. */
	r = sd_event_add_signal(loop, NULL, SIGTERM, NULL, NULL);
	return r < 0 ? r : sd_event_add_signal(loop, NULL, SIGINT, NULL, NULL);
}

static int run(const struct arguments *arguments, struct sl_error *err)
{
	struct sl_kube_config config = {0};
	struct sl_webhook *webhook = NULL;
	sd_event *loop = NULL;
	int r = sl_kube_config_find(&config, arguments->kubeconfig, err);

	if (r < 0)
		return r;
	r = sd_event_new(&loop);
	if (r >= 0)
		r = add_signals(loop);
	if (r < 0)
		sl_kube_config_fini(&config);
	else
		r = sl_webhook_new(&webhook, loop, &config, arguments->listen, err);
	if (r >= 0)
		r = sd_event_loop(loop);
	webhook = sl_webhook_free(webhook);
	loop = sd_event_unref(loop);
	return r;
}

int sl_webhook_main(int argc, char **argv)
{
	struct arguments arguments = {.listen = LISTEN};
	struct sl_error err = {0};
	int r = parse(argc, argv, &arguments);

	if (r >= 0)
		return r;
	r = run(&arguments, &err);
	if (r >= 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "sluice-kube: %s\n", err.text[0] ? err.text : strerror(-r));
	return EXIT_FAILURE;
}
