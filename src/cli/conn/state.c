/* One place, so ps, gpus and top use the same words. */
#include "cli/conn/state.h"

#include "cli/line/table.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

const char *sl_state_request(const struct sl_msg_use_row *row, char *buf, size_t size)
{
	if (sl_wire_gave_up_request(row->residency))
		snprintf(buf, size, "-");
	else
		sl_bytes_short(row->request_bytes, buf, size);
	return buf;
}

const char *sl_state_longest(const struct sl_msg_use_row *row, char *buf, size_t size)
{
	if (!row->longest_wait_ms)
		snprintf(buf, size, "-");
	else if (row->longest_wait_ms == UINT64_MAX)
		snprintf(buf, size, "endless");
	else
		sl_table_age(row->longest_wait_ms, buf, size);
	return buf;
}

bool sl_state_has_compute(const struct sl_msg_use_row *row)
{
	return row->compute_request_pm || row->compute_limit_pm ||
	       row->compute_used_pm != UINT32_MAX;
}

const char *sl_state_compute(const struct sl_msg_use_row *row, char *buf, size_t size)
{
	double request = row->compute_request_pm / 1000.0;
	double limit = row->compute_limit_pm / 1000.0;
	bool used = row->compute_used_pm != UINT32_MAX;
	char shares[24] = "";

	if (row->compute_limit_pm && row->compute_limit_pm != row->compute_request_pm)
		snprintf(shares, sizeof(shares), "%g-%g", request, limit);
	else if (row->compute_request_pm)
		snprintf(shares, sizeof(shares), "%g", request);
	else
		snprintf(shares, sizeof(shares), "%s", used ? "rest" : "-");
	if (used)
		snprintf(buf, size, "%s %u%%", shares, (row->compute_used_pm + 5) / 10);
	else
		snprintf(buf, size, "%s", shares);
	return buf;
}

const char *sl_state_condition(uint32_t condition)
{
	static const char *const names[SL_WIRE_CONDITIONS] = {
		[SL_WIRE_RUNNING] = "running",
		[SL_WIRE_STOPPED] = "stopped",
		[SL_WIRE_TRACED] = "traced",
		[SL_WIRE_SILENT] = "silent",
	};

	return condition < SL_WIRE_CONDITIONS ? names[condition] : "?";
}

const char *sl_state_of_client(
	const struct sl_msg_client_row *row, char *buf, size_t size)
{
	const char *why = row->condition != SL_WIRE_RUNNING
				  ? sl_state_condition(row->condition)
				  : NULL;
	const char *state = row->flags & SL_CLIENT_STOPPING     ? "stopping"
			    : row->flags & SL_CLIENT_UNTAKEABLE ? "untakeable"
			    : why                               ? why
			    : row->flags & SL_CLIENT_WAITS      ? "waiting"
								: "running";

	/* A client that never becomes idle is untakeable although it runs. */
	if (!why && row->flags & SL_CLIENT_UNTAKEABLE)
		why = "busy";
	if (why && why != state)
		snprintf(buf, size, "%s (%s)", state, why);
	else
		snprintf(buf, size, "%s", state);
	return buf;
}

const char *sl_state_user(uint32_t uid, char *buf, size_t size)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(buf, size, "%s", user->pw_name);
	else
		snprintf(buf, size, "%u", uid);
	return buf;
}

void sl_state_set_name(
	struct sl_table *table, size_t column, uint32_t uid, const char *name)
{
	char user[64];

	if (uid == geteuid())
		sl_table_set(table, column, "%s", name);
	else
		sl_table_set(table, column, "%s/%s",
			sl_state_user(uid, user, sizeof(user)), name);
}
