/*
 * launch - the options of `run` and `submit`, and how they reach the daemon
 *
 * Both verbs use one table, so a command tried with `sluice run` is queued by changing the verb.
 * The settings of each verb begin with a struct sl_launch, so the rows hold for both. No state, no
 * locks.
 */
#ifndef SL_CLI_RUN_LAUNCH_H
#define SL_CLI_RUN_LAUNCH_H

#include "base/paths.h"
#include "cli/line/cli.h"
#include "cli/line/amounts.h"
#include "wire/wire.h"

struct sl_launch {
	struct sl_amount request, limit;
	struct sl_amount compute_request, compute_limit; /* fractions */
	int64_t gpus, priority;
	const char *project, *name, *resource;
	char resource_project[64]; /* the project, if the resource chose it */
	enum sl_switch swap, oom_first;
	sl_ns longest_wait, warm_after, detach_after, idle_grace;
	const char *on_collision;
	uint32_t chain; /* on_collision; 0: the node's */
	bool observe, keep_resident, rdma, force, json;
};

/* gpus and priority before sl_launch_amounts: not given. */
#define SL_LAUNCH_UNSET INT64_MIN
/* The values before the options are read. */
#define SL_LAUNCH_PRESET                                                   \
	{                                                                  \
		.gpus = SL_LAUNCH_UNSET, .priority = SL_LAUNCH_UNSET,      \
		.project = "default", .warm_after = SL_WARM_UNSET,         \
		.detach_after = SL_WARM_UNSET, .idle_grace = SL_WARM_UNSET \
	}

#define SL_LAUNCH_DAY_MS (24 * 3600 * 1000)

/* The rows. The default request and the place of the JSON output differ between the verbs. */
#define SL_LAUNCH_OPTIONS(no_request, no_limit, json_help)                               \
	SL_OPT(struct sl_launch, request, AMOUNT, "AMOUNT", 0, 0,                        \
		"Guaranteed GPU memory, on each GPU. Default: the limit, or " no_request \
		"."),                                                                    \
		SL_OPT(struct sl_launch, limit, AMOUNT, "AMOUNT", 0, 0,                  \
			"The most it may hold on each GPU. Default: the request, "       \
			"or " no_limit "."),                                             \
		SL_OPT_AS("compute-request", struct sl_launch, compute_request, AMOUNT,  \
			"SHARE", 0, 0,                                                   \
			"Share of each GPU's time (0.25) it has when others want it. "   \
			"Default: what the requests of others leave, in equal parts."),  \
		SL_OPT_AS("compute-limit", struct sl_launch, compute_limit, AMOUNT,      \
			"SHARE", 0, 0,                                                   \
			"The most of each GPU's time it gets while others want it, or "  \
			"always (compute in sluiced.conf). Default: all."),              \
		SL_OPT(struct sl_launch, resource, NAME, "NAME", 0, 0,                   \
			"A compute resource, for request, limit, GPUs and priority "     \
			"if not given here."),                                           \
		SL_OPT(struct sl_launch, observe, FLAG, NULL, 0, 0,                      \
			"No request and no limit: only measure what it needs, for "      \
			"sluice advise."),                                               \
		SL_OPT(struct sl_launch, gpus, INTEGER, "N", 1, 64,                      \
			"Number of GPUs. Default 1."),                                   \
		SL_OPT(struct sl_launch, priority, INTEGER, "N", -SL_PRIORITY_MAX,       \
			SL_PRIORITY_MAX,                                                 \
			"Higher is served first, -1000 to 1000. Default 0."),            \
		SL_OPT(struct sl_launch, project, NAME, "PROJECT", 0, 0,                 \
			"Project it belongs to. Default: default."),                     \
		SL_OPT(struct sl_launch, name, NAME, "NAME", 0, 0,                       \
			"Name in lists. Default: chosen by the daemon."),                \
		SL_OPT_AS("idle-grace", struct sl_launch, idle_grace, DURATION, "TIME",  \
			0, SL_WARM_AFTER_MS_MAX,                                         \
			"Idle time after which others' bursts may move its memory "      \
			"within its request; 0: as soon as it is idle. Default: "        \
			"the daemon's."),                                                \
		SL_OPT_AS("keep-resident", struct sl_launch, keep_resident, FLAG, NULL,  \
			0, 0, "Its memory always stays on its GPUs."),                   \
		SL_OPT(struct sl_launch, swap, SWITCH, "on|off", 0, 0,                   \
			"off: the same as --keep-resident. Default on."),                \
		SL_OPT(struct sl_launch, rdma, FLAG, NULL, 0, 0,                         \
			"Its memory may be registered with other devices, such as "      \
			"network cards (GPUDirect RDMA), and is never moved."),          \
		SL_OPT_AS("oom-first", struct sl_launch, oom_first, SWITCH, "on|off", 0, \
			0,                                                               \
			"Its first demand that does not fit gets out-of-memory, the "    \
			"next waits. Default: the daemon's."),                           \
		SL_OPT_AS("on-collision", struct sl_launch, on_collision, NAME, "CHAIN", \
			0, 0,                                                            \
			"If memory above the request does not fit: swap, wait, "         \
			"priority or fail, or several with commas. Default: "            \
			"default, the daemon's."),                                       \
		SL_OPT_AS("longest-wait", struct sl_launch, longest_wait, DURATION,      \
			"TIME", 1, SL_LAUNCH_DAY_MS,                                     \
			"Longest wait for memory above the request. Default: the "       \
			"daemon's."),                                                    \
		SL_OPT_AS("warm-after", struct sl_launch, warm_after, DURATION, "TIME",  \
			0, SL_WARM_AFTER_MS_MAX,                                         \
			"Move it to host memory after this idle time; 0: never. "        \
			"Default: the daemon's."),                                       \
		SL_OPT_AS("detach-after", struct sl_launch, detach_after, DURATION,      \
			"TIME", 0, SL_WARM_AFTER_MS_MAX,                                 \
			"Detach it after this idle time, and give its request up "       \
			"until its next call; 0: never. Default: the daemon's."),        \
		SL_OPT(struct sl_launch, force, FLAG, NULL, 0, 0,                        \
			"Start CMD even if Sluice cannot work in it; only warn."),       \
		SL_OPT(struct sl_launch, json, FLAG, NULL, 0, 0, json_help)

/* What the help of both says about amounts. */
#define SL_LAUNCH_AMOUNT                                                             \
	SL_OPT_WORDS("AMOUNT", "A fraction of what a GPU can share (0.25) or bytes " \
			       "(10GiB, 512Mi, 10G).")

/* The functions below check the rest of the command line: -1 to go on, else the exit status, after
 * a message. */

/* Checks that words has a command. */
SL_MUST_CHECK int sl_launch_words(enum sl_verb_id verb, bool json, char *const *words);
/* Completes the amounts, from the compute resource if one is named (which asks the daemon), and
 * checks them against each other. */
SL_MUST_CHECK int sl_launch_amounts(enum sl_verb_id verb, struct sl_launch *launch);
/* Is the command found, and can Sluice work in it? */
SL_MUST_CHECK int sl_launch_command(
	enum sl_verb_id verb, const struct sl_launch *launch, char *const *words);
/* Copies the user's own CUDA_VISIBLE_DEVICES into visible, and SL_RUN_VISIBLE_SET into *flags. */
SL_MUST_CHECK int sl_launch_visible(
	enum sl_verb_id verb, bool json, char *visible, size_t size, uint32_t *flags);

/* SL_RUN_* */
uint32_t sl_launch_flags(const struct sl_launch *launch);
/* The command for lists: blanks between words; unprintable text becomes '?'. */
void sl_launch_join(char *out, size_t size, char *const *words);

#endif
