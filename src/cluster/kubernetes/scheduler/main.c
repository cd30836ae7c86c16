/*
 * main - the command line of `sluice-kube scheduler`
 */
#include "cluster/kubernetes/scheduler/main.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/scheduler/scheduler.h"

enum { EXIT_USAGE = 2 };

#define LEASE_S      15
#define LEASE_LEAST  2
#define WITHIN_LEAST 5
#define MOST_S       3600

static void help(void)
{
	(void)puts("sluice-kube scheduler [options]\n"
		   "\n"
		   "Places pods with schedulerName: sluice on the GPUs that sluice-kube "
		   "node\n"
		   "publishes: projects with quotas, fair share, gangs, parking. Of "
		   "several\n"
		   "replicas one decides. Runs in the foreground.\n"
		   "\n"
		   "  --kubeconfig FILE    default: the pod's service account, else "
		   "KUBECONFIG\n"
		   "  --name NAME          schedulerName of its pods; default: sluice\n"
		   "  --namespace NAME     of its Lease; default: POD_NAMESPACE, else "
		   "sluice\n"
		   "  --identity NAME      in the Lease, another one for each replica; "
		   "default:\n"
		   "                       POD_NAME, else host and process\n"
		   "  --lease SECONDS      how long the Lease holds; 2 to 3600, default: "
		   "15\n"
		   "  --park-within SECONDS\n"
		   "                       a park that its node does not confirm is "
		   "taken back,\n"
		   "                       and others are parked; 5 to 3600, default: "
		   "120\n"
		   "  --placement NAME     pack: where least is left; spread: on the "
		   "emptiest GPU;\n"
		   "                       bestfit, fgd; default: pack\n"
		   "  --log LEVEL          error, warning, info or debug; default: info\n"
		   "  --help               print this");
}

struct arguments {
	struct sl_kube_scheduler_options options;
	char identity[300];
};

static int usage(const char *what, const char *text, const char *remedy)
{
	(void)fprintf(stderr, "sluice-kube scheduler: %s %s: %s\n", what, text, remedy);
	return EXIT_USAGE;
}

static int take_seconds(
	const char *option, const char *text, unsigned long least, sl_ns *out)
{
	char remedy[64];
	char *end = NULL;
	unsigned long seconds = strtoul(text, &end, 10);

	(void)snprintf(remedy, sizeof(remedy), "write %lu to %d seconds", least, MOST_S);
	if (*end || seconds < least || seconds > MOST_S)
		return usage(option, text, remedy);
	*out = seconds * SL_S;
	return 0;
}

static int take_name(const char *option, const char *text, const char **out)
{
	if (!sl_kube_is_name(text))
		return usage(option, text, "write a name of Kubernetes");
	*out = text;
	return 0;
}

static int take_option(int option, struct sl_kube_scheduler_options *out)
{
	switch (option) {
	case 'k': out->kubeconfig = optarg; return 0;
	case 'n': return take_name("--name", optarg, &out->name);
	case 's': return take_name("--namespace", optarg, &out->namespace);
	case 'i': return take_name("--identity", optarg, &out->identity);
	case 't': return take_seconds("--lease", optarg, LEASE_LEAST, &out->lease);
	case 'w':
		return take_seconds(
			"--park-within", optarg, WITHIN_LEAST, &out->park_within);
	case 'p':
		return sl_placement_policy_find(optarg, &out->placement)
			       ? 0
			       : usage("--placement", optarg,
					 "write pack, spread, bestfit or fgd");
	case 'l':
		return sl_log_set_level_name(optarg)
			       ? 0
			       : usage("--log", optarg,
					 "write error, warning, info or debug");
	default:
		return usage("option", "unknown or incomplete",
			"see sluice-kube scheduler --help");
	}
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct sl_kube_scheduler_options *out)
{
	static const struct option options[] = {
		{"kubeconfig", required_argument, NULL, 'k'},
		{"name", required_argument, NULL, 'n'},
		{"namespace", required_argument, NULL, 's'},
		{"identity", required_argument, NULL, 'i'},
		{"lease", required_argument, NULL, 't'},
		{"park-within", required_argument, NULL, 'w'},
		{"placement", required_argument, NULL, 'p'},
		{"log", required_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option, r = 0;

	while (r == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h') {
			help();
			return 0;
		}
		r = take_option(option, out);
	}
	if (r == 0 && optind != argc)
		return usage("argument", argv[optind], "there are none but options");
	return r ? r : -1;
}

static const char *or_environment(
	const char *given, const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	if (given)
		return given;
	return value && sl_kube_is_name(value) ? value : otherwise;
}

static void complete(struct arguments *a)
{
	char host[256] = "";

	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(a->identity, sizeof(a->identity), "%s_%d", host, (int)getpid());
	a->options.name = a->options.name ? a->options.name : SL_KUBE_SCHEDULER_NAME;
	a->options.namespace =
		or_environment(a->options.namespace, "POD_NAMESPACE", "sluice");
	a->options.identity =
		or_environment(a->options.identity, "POD_NAME", a->identity);
	a->options.lease = a->options.lease ? a->options.lease : LEASE_S * SL_S;
}

static int on_signal(
	sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	struct sl_ks **ks = context;

	/* A second signal ends the process at once. */
	(void)sd_event_source_set_userdata(source, NULL);
	if (ks && *ks)
		sl_kube_scheduler_end(*ks);
	else
		(void)sd_event_exit(sd_event_source_get_event(source), 0);
	return 0;
}

static int run(const struct sl_kube_scheduler_options *options, struct sl_error *err)
{
	struct sl_ks *ks = NULL;
	sd_event *loop = NULL;
	sigset_t signals;
	int r = sd_event_new(&loop);

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	if (r >= 0)
		r = sd_event_add_signal(loop, NULL, SIGTERM, on_signal, &ks);
	if (r >= 0)
		r = sd_event_add_signal(loop, NULL, SIGINT, on_signal, &ks);
	if (r < 0)
		sl_error_set(err, "cannot make an event loop: %s", strerror(-r));
	if (r >= 0)
		r = sl_kube_scheduler_new(loop, options, &ks, err);
	if (r >= 0)
		r = sd_event_loop(loop);
	ks = sl_kube_scheduler_free(ks);
	loop = sd_event_unref(loop);
	return r;
}

int sl_kube_scheduler_main(int argc, char **argv)
{
	struct arguments arguments = {0};
	struct sl_error err = {0};
	int r = parse(argc, argv, &arguments.options);

	if (r >= 0)
		return r;
	complete(&arguments);
	r = run(&arguments.options, &err);
	if (r >= 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "sluice-kube scheduler: %s\n",
		err.text[0] ? err.text : strerror(-r));
	return EXIT_FAILURE;
}
