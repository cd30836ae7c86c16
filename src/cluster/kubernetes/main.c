/*
 * sluice-kube - its command line
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/paths.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/node/cdi.h"
#include "cluster/kubernetes/node/node.h"
#include "cluster/kubernetes/scheduler/main.h"
#include "cluster/kubernetes/webhook/webhook.h"

enum { EXIT_USAGE = 2 };

#define FACTOR_MOST 10

static void help(FILE *out)
{
	(void)fputs(
		"sluice-kube node [options]\n"
		"sluice-kube webhook [options]; see sluice-kube webhook --help\n"
		"sluice-kube scheduler [options]; see sluice-kube scheduler --help\n"
		"\n"
		"Makes the sluiced of this machine a driver of Kubernetes: publishes its "
		"GPUs, and\n"
		"prepares the claims of pods for containers. Runs in the foreground; "
		"SIGTERM ends\n"
		"it, and pods keep what they have.\n"
		"\n"
		"  --node NAME          the node's name in Kubernetes; default: "
		"NODE_NAME, "
		"else the\n"
		"                       name of the host\n"
		"  --kubeconfig FILE    default: the pod's service account, else "
		"KUBECONFIG\n"
		"  --socket PATH        sluiced's socket; default: as sluice finds it\n"
		"  --kubelet DIR        the kubelet's root; default: /var/lib/kubelet\n"
		"  --cdi DIR            where CDI files go; default: " SL_CDI_DIR "\n"
		"  --library FILE       libsluice.so on the node; default: the installed "
		"one\n"
		"  --vendor KIND        CDI kind that has each GPU's device nodes and "
		"driver "
		"by its\n"
		"                       UUID, such as nvidia.com/gpu; default: none\n"
		"  --preload-file FILE  mount FILE, which names "
		"/opt/sluice/libsluice.so,"
		"\n"
		"                       as /etc/ld.so.preload instead of setting "
		"LD_PRELOAD\n"
		"  --device-plugin      hand out sluice.dev/memory as a device plugin, "
		"instead of\n"
		"                       claims: for Kubernetes before 1.36\n"
		"  --memory-factor N    let claims have N times the memory that GPUs "
		"have, 1 to "
		"10: each\n"
		"                       is guaranteed the Nth part of its own; default: "
		"1\n"
		"  --env NAME=VALUE     for all containers with a claim; may come again\n"
		"  --mount FROM:TO      likewise: FROM on the node, read-only, as TO\n"
		"  --device PATH        likewise: a device node\n"
		"  --log LEVEL          error, warning, info or debug; default: info\n"
		"  --version            print the version\n"
		"  --help               print this\n",
		out);
}

struct arguments {
	struct sl_kube_node_options node;
	char name[256], socket[SL_SOCKET_PATH_MAX], library[SL_PATH_MAX];
};

static int usage(const char *what, const char *text, const char *remedy)
{
	(void)fprintf(stderr, "sluice-kube: %s %s: %s\n", what, text, remedy);
	return EXIT_USAGE;
}

static int gather(const char *option, const char *text, const char **list, size_t *count,
	bool is_right, const char *remedy)
{
	if (!is_right)
		return usage(option, text, remedy);
	if (*count == SL_KUBE_EXTRAS)
		return usage(
			option, text, "there are too many of these; 16 may be given");
	list[(*count)++] = text;
	return 0;
}

static bool is_mount(const char *text)
{
	const char *colon = strchr(text, ':');

	return text[0] == '/' && colon && colon - text < 256 && colon[1] == '/' &&
	       !strchr(colon + 1, ':');
}

/* "1.5": in percent. */
static int take_factor(const char *text, unsigned int *pct)
{
	static const unsigned int places[] = {100, 10, 1};
	const char *at = text;
	unsigned int whole = 0, parts = 0;
	size_t digits = 0;

	for (; isdigit((unsigned char)*at) && whole <= FACTOR_MOST; at++)
		whole = 10 * whole + (unsigned int)(*at - '0');
	if (at != text && *at == '.') {
		for (at++; isdigit((unsigned char)*at) && digits < 2; at++, digits++)
			parts = 10 * parts + (unsigned int)(*at - '0');
	}
	*pct = 100 * whole + parts * places[digits];
	if (!*at && *pct >= 100 && *pct <= 100 * FACTOR_MOST)
		return 0;
	return usage("--memory-factor", text,
		"write a number from 1 to 10 with at most two decimals, such as 1.5");
}

static int take_option(int option, struct arguments *out)
{
	struct sl_kube_node_options *node = &out->node;
	const char *equals = optarg ? strchr(optarg, '=') : NULL;

	switch (option) {
	case 'n': node->name = optarg; return 0;
	case 'k': node->kubeconfig = optarg; return 0;
	case 's': node->socket = optarg; return 0;
	case 'K': node->kubelet = optarg; return 0;
	case 'c': node->cdi = optarg; return 0;
	case 'L': node->library = optarg; return 0;
	case 'V': node->vendor = optarg; return 0;
	case 'P': node->preload_file = optarg; return 0;
	case 'D': node->device_plugin = true; return 0;
	case 'F': return take_factor(optarg, &node->memory_factor_pct);
	case 'e':
		return gather("--env", optarg, node->env, &node->env_count,
			equals && equals != optarg, "write NAME=VALUE");
	case 'm':
		return gather("--mount", optarg, node->mounts, &node->mount_count,
			is_mount(optarg),
			"write FROM:TO, both absolute and without a colon");
	case 'd':
		return gather("--device", optarg, node->nodes, &node->node_count,
			optarg[0] == '/', "write an absolute path");
	case 'l':
		return sl_log_set_level_name(optarg)
			       ? 0
			       : usage("--log", optarg,
					 "write error, warning, info or debug");
	default:
		return usage("option", "unknown or incomplete", "see sluice-kube --help");
	}
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct arguments *out)
{
	static const struct option options[] = {
		{"node", required_argument, NULL, 'n'},
		{"kubeconfig", required_argument, NULL, 'k'},
		{"socket", required_argument, NULL, 's'},
		{"kubelet", required_argument, NULL, 'K'},
		{"cdi", required_argument, NULL, 'c'},
		{"library", required_argument, NULL, 'L'},
		{"vendor", required_argument, NULL, 'V'},
		{"preload-file", required_argument, NULL, 'P'},
		{"device-plugin", no_argument, NULL, 'D'},
		{"memory-factor", required_argument, NULL, 'F'},
		{"env", required_argument, NULL, 'e'},
		{"mount", required_argument, NULL, 'm'},
		{"device", required_argument, NULL, 'd'},
		{"log", required_argument, NULL, 'l'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option, r = 0;

	while (r == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'v') {
			(void)puts("sluice-kube " SL_VERSION);
			return 0;
		}
		if (option == 'h') {
			help(stdout);
			return 0;
		}
		r = take_option(option, out);
	}
	if (r)
		return r;
	if (out->node.device_plugin && out->node.memory_factor_pct)
		return usage("--memory-factor", "with --device-plugin",
			"only claims can have more memory than there is; leave one out");
	if (optind + 1 == argc && strcmp(argv[optind], "node") == 0)
		return -1;
	if (optind == argc)
		return usage("no role", "",
			"write sluice-kube node, sluice-kube webhook or sluice-kube "
			"scheduler");
	return usage("role", argv[optind],
		"write sluice-kube node, webhook or scheduler, and options behind it");
}

/* Fills in defaults. */
static int complete(struct arguments *a, struct sl_error *err)
{
	struct sl_kube_node_options *node = &a->node;
	char folder[SL_PATH_MAX / 2] = "";

	if (!node->name)
		node->name = getenv("NODE_NAME");
	if (!node->name || !*node->name) {
		if (gethostname(a->name, sizeof(a->name) - 1) < 0)
			return sl_err_origin(-errno);
		node->name = a->name;
	}
	if (!sl_kube_is_name(node->name)) {
		sl_error_set(err, "'%.100s' is no node's name; give it with --node",
			node->name);
		return sl_err_origin(-EINVAL);
	}
	if (!node->socket) {
		if (sl_paths_socket(a->socket, sizeof(a->socket), err) != SL_PATHS_OK)
			return sl_err_origin(-EINVAL);
		node->socket = a->socket;
	}
	node->kubelet = node->kubelet ? node->kubelet : "/var/lib/kubelet";
	node->cdi = node->cdi ? node->cdi : SL_CDI_DIR;
	if (node->library)
		return 0;
	if (sl_paths_program_dir(folder, sizeof(folder)) < 0)
		return sl_err_origin(-ENOENT);
	node->library = a->library;
	(void)snprintf(a->library, sizeof(a->library), "%s/libsluice.so", folder);
	if (access(a->library, R_OK) == 0)
		return 0;
	(void)snprintf(
		a->library, sizeof(a->library), "%s/../lib/sluice/libsluice.so", folder);
	return 0;
}

static int run(const struct sl_kube_node_options *options, struct sl_error *err)
{
	struct sl_kube_node *node = NULL;
	sd_event *loop = NULL;
	sigset_t signals;
	int r = sd_event_new(&loop);

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	/* Without a handler both signals end the loop. */
	if (r >= 0)
		r = sd_event_add_signal(loop, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(loop, NULL, SIGINT, NULL, NULL);
	if (r < 0)
		sl_error_set(err, "cannot make an event loop: %s", strerror(-r));
	if (r >= 0)
		r = sl_kube_node_new(loop, options, &node, err);
	if (r >= 0)
		r = sd_event_loop(loop);
	node = sl_kube_node_free(node);
	loop = sd_event_unref(loop);
	return r;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {0};
	struct sl_error err = {0};
	int r;

	sl_log_set_tag("sluice-kube");
	sl_log_set_level(SL_LOG_INFO);
	if (argc > 1 && strcmp(argv[1], "webhook") == 0)
		return sl_webhook_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "scheduler") == 0)
		return sl_kube_scheduler_main(argc - 1, argv + 1);
	r = parse(argc, argv, &arguments);
	if (r >= 0)
		return r;
	r = complete(&arguments, &err);
	if (r == 0)
		r = run(&arguments.node, &err);
	if (r >= 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "sluice-kube: %s\n", err.text[0] ? err.text : strerror(-r));
	return EXIT_FAILURE;
}
