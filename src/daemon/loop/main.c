/*
 * sluiced - the daemon's command line
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/paths.h"
#include "daemon/loop/start.h"
#include "daemon/web/page.h"

enum { EXIT_USAGE = 2 };

struct arguments {
	const char *config, *log;
	bool check;
	char socket[SL_PATH_MAX], state[SL_PATH_MAX];
};

static void help(FILE *out)
{
	(void)fputs(
		"sluiced [--config FILE] [--socket PATH] [--state DIR] [--log LEVEL]\n"
		"sluiced --check [FILE]\n"
		"\n"
		"Shares this machine's GPUs among the programs that `sluice run` starts. "
		"Runs in the\n"
		"foreground; SIGTERM ends it, SIGHUP reads the configuration anew. "
		"Programs keep their\n"
		"memory and run on without it.\n"
		"\n"
		"  --config FILE   YAML, see --help-config and sluiced.conf(5); "
		"default: " SL_PATHS_SYSTEM_CONFIG "\n"
		"                  for root and ~/.config/sluice/sluiced.conf for "
		"others, if it is there\n"
		"  --check [FILE]  say what is wrong with the configuration, and start "
		"nothing\n"
		"  --socket PATH   where to listen; default: SLUICE_SOCKET, else "
		"/run/sluice/sluiced.sock\n"
		"                  for root and $XDG_RUNTIME_DIR/sluice/sluiced.sock for "
		"others\n"
		"  --state DIR     where the journal is; default: the folder of the "
		"socket's default\n"
		"  --log LEVEL     error, warning, info or debug; default: info\n"
		"  --version       print the version\n"
		"  --help-config   print every key of the configuration; =sample: as a "
		"file to start from\n"
		"  --help          print this\n",
		out);
}

/* The process never changes its folder, but its messages should name full paths. */
static int absolute(const char *option, const char *path, char *buf, size_t size)
{
	char here[SL_PATH_MAX] = "";
	int n;

	if (path[0] != '/' && !getcwd(here, sizeof(here))) {
		(void)fprintf(stderr,
			"sluiced: %s %s is relative, and there is no current folder\n",
			option, path);
		return EXIT_USAGE;
	}
	n = snprintf(buf, size, "%s%s%s", here, here[0] ? "/" : "", path);
	if (path[0] == '\0' || n < 0 || (size_t)n >= size) {
		(void)fprintf(stderr, "sluiced: %s needs a path of 1 to %zu bytes\n",
			option, size - 1);
		return EXIT_USAGE;
	}
	return 0;
}

static int print_table(const char *form)
{
	static const char *const forms[] = {[SL_CONFIG_FOR_PEOPLE] = "",
		[SL_CONFIG_FOR_MAN] = "mdoc",
		[SL_CONFIG_FOR_SAMPLE] = "sample"};

	for (size_t i = 0; i < SL_ARRAY_LEN(forms); i++) {
		if (strcmp(form, forms[i]) == 0) {
			sl_config_help(stdout, (enum sl_config_form)i);
			return 0;
		}
	}
	(void)fprintf(stderr,
		"sluiced: --help-config=%s: write mdoc, sample, or nothing\n", form);
	return EXIT_USAGE;
}

/* -1: go on; otherwise the exit status. */
static int parse(int argc, char **argv, struct arguments *out)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'x'},
		{"socket", required_argument, NULL, 's'},
		{"state", required_argument, NULL, 'd'},
		{"log", required_argument, NULL, 'l'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{"help-config", optional_argument, NULL, 'k'},
		{NULL, 0, NULL, 0},
	};
	int option, r = 0;

	while (r == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c': out->config = optarg; break;
		case 's':
			r = absolute(
				"--socket", optarg, out->socket, sizeof(out->socket));
			break;
		case 'd':
			r = absolute("--state", optarg, out->state, sizeof(out->state));
			break;
		case 'x': out->check = true; break;
		case 'l': out->log = optarg; break;
		case 'v': (void)puts("sluiced " SL_VERSION); return 0;
		case 'h': help(stdout); return 0;
		case 'k': return print_table(optarg ? optarg : "");
		default: help(stderr); return EXIT_USAGE;
		}
	}
	if (r)
		return r;
	if (out->check && optind < argc)
		out->config = argv[optind++];
	if (optind < argc) {
		(void)fprintf(stderr, "sluiced: '%s' is no option; see sluiced --help\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	return -1;
}

static int configure(const struct arguments *arguments, struct sl_config *config)
{
	struct sl_error err = {0};
	int r;

	r = sl_config_load(arguments->config, config, &err);
	/* The listener refuses too long a path for a socket, in its own words. */
	if (r == SL_CONFIG_OK && arguments->socket[0])
		sl_wire_str(config->socket.text, sizeof(config->socket.text),
			arguments->socket);
	if (r == SL_CONFIG_OK && arguments->state[0])
		r = sl_config_set(config, "state_dir", arguments->state, &err);
	if (r != SL_CONFIG_OK) {
		(void)fprintf(stderr, "sluiced: %s\n", err.text);
		return EXIT_USAGE;
	}
	if (!sl_log_set_level_name(
		    arguments->log ? arguments->log : config->log_level.text)) {
		(void)fprintf(stderr,
			"sluiced: --log %s is no level; write error, warning, info or "
			"debug\n",
			arguments->log);
		return EXIT_USAGE;
	}
	return 0;
}

/* The usual file, or the one named on the command line; absolute, since SIGHUP reads it again. */
static int find_config(struct arguments *arguments, char *buf, size_t size)
{
	struct sl_error err = {0};
	int r = 0;

	if (arguments->config)
		r = absolute(arguments->check ? "--check" : "--config", arguments->config,
			buf, size);
	else if (sl_paths_config(buf, size, &err) != SL_PATHS_OK) {
		(void)fprintf(stderr, "sluiced: %s\n", err.text);
		r = EXIT_USAGE;
	}
	arguments->config = buf;
	return r;
}

static int check(const char *path, const struct sl_config *config)
{
	struct sl_error err = {0};

	if (sl_page_check(config, &err) < 0) {
		(void)fprintf(stderr, "sluiced: %s: %s\n", path, err.text);
		return EXIT_USAGE;
	}
	(void)printf("%s: %s\n", path,
		access(path, F_OK) == 0 ? "good"
					: "not there; every key has its default");
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static struct arguments arguments;
	static struct sl_daemon daemon;
	static struct sl_config config;
	char config_path[SL_PATH_MAX];
	struct sl_error err = {0};
	int r = parse(argc, argv, &arguments);

	if (r >= 0)
		return r;
	sl_log_set_tag("sluiced");
	r = find_config(&arguments, config_path, sizeof(config_path));
	if (r == 0)
		r = configure(&arguments, &config);
	if (r)
		return r;
	if (arguments.check)
		return check(config_path, &config);
	r = sl_daemon_init(&daemon, &config, arguments.config, arguments.log, &err);
	if (r < 0)
		(void)fprintf(stderr, "sluiced: %s\n", err.text);
	else
		r = sl_daemon_run(&daemon);
	sl_daemon_fini(&daemon);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
