/*
 * complete - verbs, options and their values come from the tables that parse them
 *
 * Names come from other users, so a name with a character that a shell interprets is left out.
 */
#include "cli/verbs/complete.h"

#include "cli/line/cli.h"
#include "cli/conn/named.h"
#include "cli/conn/rows.h"
#include "cli/conn/state.h"
#include "daemon/report/tell.h"
#include "policy/words/reason.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void offer(const char *word)
{
	static const char harmless[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._:@%+=,/-";

	if (word[0] && !word[strspn(word, harmless)])
		puts(word);
}

static void offer_meant(const char *before, const char *word, const char *meaning)
{
	printf("%s%s\t%s\n", before, word, meaning);
}

/* "on|off": offers each word; a text with capitals only describes the value. */
static void offer_words(const char *words)
{
	char word[64];

	if (words[strcspn(words, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")])
		return;
	for (size_t length; *words; words += length + (words[length] == '|')) {
		length = strcspn(words, "|");
		(void)snprintf(word, sizeof(word), "%.*s", (int)length, words);
		offer(word);
	}
}

/* --- names ------------------------------------------------------------------------------------ */

enum { RUNNING = 1, QUEUED = 2, OVER = 4 };

/* Offers the name in the form that `sluice ps` shows, which is unambiguous. */
static void offer_name(uint32_t uid, const char *name)
{
	char user[64], word[160];

	if (uid == geteuid()) {
		offer(name);
		return;
	}
	(void)snprintf(word, sizeof(word), "%s/%s",
		sl_state_user(uid, user, sizeof(user)), name);
	offer(word);
}

static void offer_names(unsigned int which)
{
	sl_cleanup(sl_rows_fini) struct sl_rows uses = {0};
	sl_cleanup(sl_rows_fini) struct sl_rows jobs = {0};
	struct sl_error ignored = {0};

	if (which & RUNNING && !sl_rows_fetch(&uses, SL_LIST_USES, &ignored)) {
		for (size_t i = 0; i < uses.count; i++) {
			const struct sl_msg_use_row *use = &uses.all[i].use_row;

			/* There is a row for each of its GPUs. */
			if (!i || use->workload != uses.all[i - 1].use_row.workload)
				offer_name(use->uid, use->name);
		}
	}
	if (!(which & (QUEUED | OVER)) ||
		sl_rows_fetch(&jobs, SL_LIST_JOBS, &ignored) != SL_EXIT_OK)
		return;
	for (size_t i = 0; i < jobs.count; i++) {
		const struct sl_msg_job_row *job = &jobs.all[i].job_row;

		if (which & OVER || (!sl_tell_job_is_over(job->state) &&
					    job->state != SL_JOB_RUNNING))
			offer_name(job->uid, job->name);
	}
}

static void offer_list(enum sl_list_what what)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	struct sl_error ignored = {0};

	if (sl_rows_fetch(&rows, what, &ignored) != SL_EXIT_OK)
		return;
	for (size_t i = 0; i < rows.count; i++)
		offer(what == SL_LIST_PROJECTS ? rows.all[i].project_row.name
					       : rows.all[i].resource_row.name);
}

/* --- places ----------------------------------------------------------------------------------- */

static void offer_amounts(void)
{
	static const char *const amounts[] = {
		"0.1", "0.25", "0.5", "0.75", "1.0", "1GiB", "4GiB", "16GiB"};

	for (size_t i = 0; i < SL_ARRAY_LEN(amounts); i++)
		offer(amounts[i]);
}

static void offer_kinds(void)
{
	for (int kind = 0; kind < SL_REASON_KINDS; kind++)
		offer(sl_reason_kind_name((enum sl_reason_kind)kind));
}

static void offer_value(const struct sl_verb *verb, const struct sl_option *row)
{
	if (!strcmp(row->name, "project"))
		offer_list(SL_LIST_PROJECTS);
	else if (!strcmp(row->name, "resource"))
		offer_list(SL_LIST_RESOURCES);
	else if (!strcmp(row->name, "kind"))
		offer_kinds();
	else if (!strcmp(row->name, "name") && verb == &sl_verbs[SL_VERB_events])
		offer_names(RUNNING);
	else if (row->type == SL_OPTION_AMOUNT)
		offer_amounts();
	else if (row->type == SL_OPTION_DURATION || row->type == SL_OPTION_SECONDS)
		offer_words("10s|1m|10m|1h");
	else if (!strcmp(row->name, "since"))
		offer_words("10m|1h|24h|7d");
	else if (!strcmp(row->value, "FILE"))
		puts(":files");
	else if (!strcmp(row->value, "FOLDER"))
		puts(":folders");
	else
		offer_words(row->value);
}

static void offer_options(const struct sl_verb *verb)
{
	for (const struct sl_option *row = verb->options; row->type; row++) {
		if (row->type < SL_OPTION_WORDS)
			offer_meant("--", row->name, row->help);
	}
	offer_meant("--", "help", "Print this.");
}

static void offer_verbs(void)
{
	for (size_t i = 0; i < SL_VERBS; i++)
		offer_meant("", sl_verbs[i].name, sl_verbs[i].summary);
}

/* For a verb with actions: completes the words so far. */
static void offer_action(
	int count, char *const *words, const char *actions, enum sl_list_what names)
{
	if (count == 2)
		offer_words(actions);
	else if (!strcmp(words[1], "apply") && names == SL_LIST_PROJECTS)
		puts(":files");
	else if (strcmp(words[1], "list") != 0)
		offer_list(names);
}

static void offer_operand(enum sl_verb_id verb, int count, char *const *words)
{
	switch (verb) {
	case SL_VERB_help: offer_verbs(); break;
	case SL_VERB_run:
	case SL_VERB_submit:
	case SL_VERB_softgpu: puts(":commands"); break;
	case SL_VERB_cdi:
	case SL_VERB_set: offer_names(RUNNING); break;
	case SL_VERB_stop:
	case SL_VERB_move:
	case SL_VERB_park:
	case SL_VERB_resume:
	case SL_VERB_why: offer_names(RUNNING | QUEUED); break;
	case SL_VERB_logs:
	case SL_VERB_wait: offer_names(OVER); break;
	case SL_VERB_project:
		offer_action(count, words, "apply|list|show|delete", SL_LIST_PROJECTS);
		break;
	case SL_VERB_resource:
		offer_action(count, words, "apply|list|delete", SL_LIST_RESOURCES);
		break;
	default: break;
	}
}

/* The option whose value the last word is, or NULL. bash splits `--option=VALUE` into three words,
 * or two without VALUE. */
static const struct sl_option *valued(
	const struct sl_verb *verb, int count, char *const *words)
{
	int at = count - 2;
	const char *before;

	at -= at > 1 && !strcmp(words[at], "=");
	before = words[at];
	if (at < 1 || strncmp(before, "--", 2) != 0)
		return NULL;
	for (const struct sl_option *row = verb->options; row->type; row++) {
		if (row->type < SL_OPTION_WORDS && row->value &&
			!strcmp(row->name, before + 2))
			return row;
	}
	return NULL;
}

int sl_complete(int count, char *const *words)
{
	const struct sl_verb *verb = count > 1 ? sl_cli_verb(words[0]) : NULL;
	const struct sl_option *row;

	if (count <= 1)
		offer_verbs();
	if (!verb)
		return sl_cli_finish(SL_VERB_help, SL_EXIT_OK);
	for (int i = 1; i < count - 1; i++) {
		/* The words behind it belong to another program. */
		if (!strcmp(words[i], "--")) {
			puts(i == count - 2 ? ":commands" : ":files");
			return sl_cli_finish(SL_VERB_help, SL_EXIT_OK);
		}
	}
	row = valued(verb, count, words);
	if (row)
		offer_value(verb, row);
	else if (words[count - 1][0] == '-')
		offer_options(verb);
	else
		offer_operand((enum sl_verb_id)(verb - sl_verbs), count, words);
	return sl_cli_finish(SL_VERB_help, SL_EXIT_OK);
}
