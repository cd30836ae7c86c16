/*
 * kubectl-sluice - its command line; kubectl runs it as `kubectl sluice`
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "cli/kubectl/kubectl.h"

#define TIMEOUT (30 * SL_S)

static const struct verb {
	const char *name;
	int (*run)(struct kubectl *k);
	int (*run_on)(struct kubectl *k, const char *pod);
	const char *help;
} verbs[] = {
	{"ps", kubectl_ps, NULL, "list pods with GPU memory and their state"},
	{"top", kubectl_top, NULL, "the same, by size, refreshed"},
	{"why", NULL, kubectl_why, "say why a pod waits, and list its events"},
	{"set", NULL, kubectl_set, "change the limit of a running pod (--limit)"},
	{"park", NULL, kubectl_park,
		"move a pod's GPU memory to the host; its processes stay"},
	{"resume", NULL, kubectl_resume, "bring a parked pod's memory back"},
};

struct arguments {
	const char *kubeconfig, *context, *namespace, *verb, *pod;
	bool all;
};

static int usage(const char *what, const char *remedy)
{
	(void)kubectl_fail("%s; %s", what, remedy);
	return EXIT_USAGE;
}

static void help(void)
{
	(void)puts("kubectl sluice VERB [POD] [options]\n");
	for (size_t i = 0; i < SL_ARRAY_LEN(verbs); i++)
		(void)printf("  %-6s %-4s %s\n", verbs[i].name,
			verbs[i].run_on ? "POD" : "", verbs[i].help);
	(void)puts(
		"\n"
		"  -n, --namespace NAME   default: the kubeconfig's, else default\n"
		"  -A, --all-namespaces   ps and top: all of them\n"
		"      --limit AMOUNT     set: such as 12Gi\n"
		"      --timeout TIME     set, park, resume: wait so long for the node; "
		"default: 30s\n"
		"      --context NAME     of the kubeconfig\n"
		"      --kubeconfig FILE  default: KUBECONFIG, else ~/.kube/config\n"
		"      --version          print the version\n"
		"      --help             print this");
}

static int take_option(int option, struct arguments *a, struct kubectl *k)
{
	struct sl_error err = {0};

	switch (option) {
	case 'n': a->namespace = optarg; return 0;
	case 'A': a->all = true; return 0;
	case 'l': k->limit = optarg; return 0;
	case 'c': a->context = optarg; return 0;
	case 'k': a->kubeconfig = optarg; return 0;
	case 't':
		if (sl_duration_parse(optarg, &k->timeout, &err) == 0)
			return 0;
		return usage("--timeout", err.text);
	default: return usage("an option is unknown or incomplete", "see --help");
	}
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct arguments *a, struct kubectl *k)
{
	static const struct option options[] = {
		{"namespace", required_argument, NULL, 'n'},
		{"all-namespaces", no_argument, NULL, 'A'},
		{"limit", required_argument, NULL, 'l'},
		{"timeout", required_argument, NULL, 't'},
		{"context", required_argument, NULL, 'c'},
		{"kubeconfig", required_argument, NULL, 'k'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option, r = 0;

	while (r == 0 &&
		(option = getopt_long(argc, argv, "n:Ah", options, NULL)) != -1) {
		if (option == 'v') {
			(void)puts("kubectl-sluice " SL_VERSION);
			return 0;
		}
		if (option == 'h') {
			help();
			return 0;
		}
		r = take_option(option, a, k);
	}
	if (r)
		return r;
	a->verb = optind < argc ? argv[optind++] : NULL;
	a->pod = optind < argc ? argv[optind++] : NULL;
	if (optind < argc)
		return usage("there are too many words", "see kubectl sluice --help");
	return -1;
}

static const struct verb *verb_of(const char *name)
{
	for (size_t i = 0; name && i < SL_ARRAY_LEN(verbs); i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	}
	return NULL;
}

/* Checks what the verb requires. 0, or the exit status. */
static int check(struct arguments *a, const struct verb *verb)
{
	if (!verb)
		return usage(a->verb ? "there is no such verb" : "no verb",
			"write ps, top, why, set, park or resume; see kubectl sluice "
			"--help");
	if (a->pod && strncmp(a->pod, "pod/", 4) == 0)
		a->pod += 4;
	if (verb->run_on && (!a->pod || !sl_kube_is_name(a->pod)))
		return usage("no pod", "write its name, as kubectl get pods shows it");
	if (verb->run && a->pod)
		return usage("this verb takes no pod", "leave it out");
	if (verb->run_on && a->all)
		return usage("-A with one pod", "write -n NAMESPACE");
	if (a->namespace && !sl_kube_is_name(a->namespace))
		return usage("-n", "write the name of a namespace");
	return 0;
}

static int run(struct kubectl *k, const struct arguments *a, const struct verb *verb)
{
	struct sl_error err = {0};
	char *own = NULL;
	int r;

	if (kubectl_open(k, a->kubeconfig, a->context, &own, &err) < 0) {
		free(own);
		kubectl_close(k);
		return kubectl_fail("%s", err.text);
	}
	k->namespace = a->all         ? NULL
		       : a->namespace ? a->namespace
		       : own          ? own
				      : "default";
	r = verb->run ? verb->run(k) : verb->run_on(k, a->pod);
	kubectl_close(k);
	free(own);
	return r;
}

int main(int argc, char **argv)
{
	struct kubectl k = {.timeout = TIMEOUT};
	struct arguments arguments = {0};
	const struct verb *verb;
	int r = parse(argc, argv, &arguments, &k);

	if (r >= 0)
		return r;
	verb = verb_of(arguments.verb);
	r = check(&arguments, verb);
	if (r)
		return r;
	(void)signal(SIGPIPE, SIG_IGN);
	return run(&k, &arguments, verb);
}
