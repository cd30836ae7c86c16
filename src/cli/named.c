/* A workload has a row per GPU, so rows of one id count once. */
#include "cli/named.h"

#include "base/file.h"
#include "cli/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct sl_msg_use_row *with_id(const struct sl_rows *uses, const char *text)
{
	char *end;
	unsigned long long id = strtoull(text, &end, 10);

	if (*end || text[0] < '0' || text[0] > '9')
		return NULL;
	for (size_t i = 0; i < uses->count; i++)
		if (uses->all[i].use_row.workload == id)
			return &uses->all[i].use_row;
	return NULL;
}

static int none(const struct sl_rows *uses, const char *name, struct sl_error *err)
{
	sl_cleanup(sl_freep) const char **names = calloc(uses->count + 1, sizeof(*names));
	const char *near = NULL;
	char tamed[64];

	for (size_t i = 0; names && i < uses->count; i++)
		names[i] = uses->all[i].use_row.name;
	if (names)
		near = sl_option_nearest(name, names);
	snprintf(tamed, sizeof(tamed), "%s", near ? near : "");
	sl_text_tame(tamed);
	sl_error_set(err, "there is no workload '%.63s'%s%s%s", name,
		near ? "; did you mean '" : "; see: sluice ps", tamed, near ? "'?" : "");
	return SL_NAMED_NONE;
}

static int several(const struct sl_rows *uses, const char *name, struct sl_error *err)
{
	char ids[256] = "";
	uint64_t last = 0;

	for (size_t i = 0; i < uses->count; i++) {
		const struct sl_msg_use_row *row = &uses->all[i].use_row;
		size_t used = strlen(ids);

		if (strcmp(row->name, name) || row->workload == last ||
			used + 48 > sizeof(ids))
			continue;
		last = row->workload;
		snprintf(ids + used, sizeof(ids) - used, "%s%llu (user %u)",
			used ? ", " : "", (unsigned long long)last, row->uid);
	}
	sl_error_set(err,
		"several users have a workload '%.63s'; give its id instead: %s", name,
		ids);
	return SL_NAMED_SEVERAL;
}

int sl_named_find(const struct sl_rows *uses, const char *name, uint32_t uid,
	const struct sl_msg_use_row **found, struct sl_error *err)
{
	bool ambiguous = false;

	*found = NULL;
	for (size_t i = 0; i < uses->count; i++) {
		const struct sl_msg_use_row *row = &uses->all[i].use_row;

		if (strcmp(row->name, name))
			continue;
		if (*found && (*found)->workload != row->workload &&
			((*found)->uid == uid) == (row->uid == uid))
			ambiguous = true;
		if (!*found || ((*found)->uid != uid && row->uid == uid)) {
			*found = row;
			if (row->uid == uid)
				ambiguous = false;
		}
	}
	if (!*found)
		*found = with_id(uses, name);
	if (ambiguous) {
		*found = NULL;
		return several(uses, name, err);
	}
	return *found ? SL_NAMED_OK : none(uses, name, err);
}

int sl_named_open(struct sl_conn *conn, struct sl_rows *uses, const char *name,
	uint32_t since, const char *what, const struct sl_msg_use_row **row,
	struct sl_error *err)
{
	int status;

	*row = NULL;
	*conn = (struct sl_conn){.fd = -1};
	if (!name) {
		sl_error_set(err, "no NAME: say which workload is meant (sluice ps)");
		return SL_EXIT_USAGE;
	}
	status = sl_conn_open(conn, err);
	if (!status)
		status = sl_conn_needs(conn, since, what, err);
	if (!status)
		status = sl_rows_list(uses, conn, SL_LIST_USES, err);
	if (!status && sl_named_find(uses, name, geteuid(), row, err))
		status = SL_EXIT_REFUSED;
	return status;
}
