/*
 * bounds - how much each user may request
 *
 *	bounds:
 *	  default: {max_request: 0.5, max_workloads: 8}
 *	  group ml: {max_request: 40GiB, max_priority: 10}
 *	  user alice: {max_priority: 100}
 *
 * Names become numbers when the file is read, and the kernel gives a peer's user and groups as
 * numbers. So no name service is asked while programs wait.
 */
#include "daemon/config/value.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* GPU memory comes in pages of 2 MiB; a smaller limit allows none. */
#define LIMIT_LEAST (2 * SL_MIB)

enum { REQUEST = 1, LIMIT = 2, PRIORITY = 4, WORKLOADS = 8 };

/* --- reading ------------------------------------------------------------------------------ */

static bool whole_number(const char *text, long min, long max, long *out)
{
	char *end = NULL;

	errno = 0;
	*out = strtol(text, &end, 10);
	return (isdigit((unsigned char)text[0]) || text[0] == '-') && end != text &&
	       !*end && !errno && *out >= min && *out <= max;
}

bool sl_config_find_id(const char *name, bool is_user, uint32_t *out)
{
	long number = 0;

	if (isdigit((unsigned char)name[0]) &&
		whole_number(name, 0, UINT32_MAX - 1l, &number)) {
		*out = (uint32_t)number;
		return true;
	}
	if (is_user) {
		const struct passwd *user = getpwnam(name);

		*out = user ? user->pw_uid : 0;
		return user != NULL;
	} else {
		const struct group *group = getgrnam(name);

		*out = group ? group->gr_gid : 0;
		return group != NULL;
	}
}

static int read_subject(
	const char *subject, struct sl_config_bound *row, struct sl_error *err)
{
	bool is_user = strncmp(subject, "user ", 5) == 0;
	bool is_group = strncmp(subject, "group ", 6) == 0;
	const char *name = subject + (is_user ? 5 : 6);

	if (strcmp(subject, "default") == 0)
		return SL_CONFIG_OK;
	if (!is_user && !is_group) {
		sl_error_set(err,
			"bounds: '%.64s' is nobody; write default, user NAME or group "
			"NAME",
			subject);
		return SL_CONFIG_BAD;
	}
	row->subject = is_user ? SL_CONFIG_USER : SL_CONFIG_OF_GROUP;
	if (sl_config_find_id(name, is_user, &row->id))
		return SL_CONFIG_OK;
	sl_error_set(err,
		"bounds: there is no %s '%.64s'; create it with %s, or remove the row",
		is_user ? "user" : "group", name, is_user ? "useradd" : "groupadd");
	return SL_CONFIG_BAD;
}

int sl_config_bounds_row(struct sl_config_bounds *bounds, const char *subject,
	struct sl_config_bound **out, struct sl_error *err)
{
	struct sl_config_bound row = {0};

	if (bounds->count == SL_CONFIG_BOUNDS_MAX) {
		sl_error_set(err, "bounds: more than %d rows; use groups",
			SL_CONFIG_BOUNDS_MAX);
		return SL_CONFIG_BAD;
	}
	if (read_subject(subject, &row, err) != SL_CONFIG_OK)
		return SL_CONFIG_BAD;
	for (uint32_t i = 0; i < bounds->count; i++) {
		if (bounds->rows[i].subject == row.subject &&
			bounds->rows[i].id == row.id) {
			sl_error_set(
				err, "bounds: %.64s comes twice; remove one", subject);
			return SL_CONFIG_BAD;
		}
	}
	*out = &bounds->rows[bounds->count++];
	**out = row;
	return SL_CONFIG_OK;
}

static int read_amount(const char *key, const char *text, uint64_t least,
	struct sl_amount *out, struct sl_error *err)
{
	char low[32];

	if (sl_amount_parse(text, out, err) != SL_AMOUNT_OK) {
		sl_error_wrap(err, "bounds: %s", key);
		return SL_CONFIG_BAD;
	}
	if (out->kind == SL_AMOUNT_FRACTION || out->value >= least)
		return SL_CONFIG_OK;
	sl_error_set(err, "bounds: %s: %.64s is too little; write at least %s", key, text,
		sl_bytes_format(least, low, sizeof(low)));
	return SL_CONFIG_BAD;
}

static int read_number(const char *key, const char *text, long min, long max, long *out,
	struct sl_error *err)
{
	if (whole_number(text, min, max, out))
		return SL_CONFIG_OK;
	sl_error_set(err,
		"bounds: %s: '%.64s' is out of range; write a number from %ld to %ld",
		key, text, min, max);
	return SL_CONFIG_BAD;
}

static uint32_t bit_of(const char *key)
{
	static const char *const keys[] = {
		"max_request", "max_limit", "max_priority", "max_workloads"};

	for (uint32_t i = 0; i < SL_ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i], key) == 0)
			return 1u << i;
	}
	return 0;
}

int sl_config_bounds_set(struct sl_config_bound *row, const char *key, const char *text,
	struct sl_error *err)
{
	uint32_t bit = bit_of(key);
	long number = 0;
	int r = SL_CONFIG_OK;

	if (!bit || row->set & bit) {
		sl_error_set(err,
			bit ? "bounds: %.64s comes twice; remove one"
			    : "bounds: unknown bound '%.64s'; there are max_request, "
			      "max_limit, max_priority and max_workloads",
			key);
		return SL_CONFIG_BAD;
	}
	switch (bit) {
	case REQUEST: r = read_amount(key, text, 0, &row->bounds.request, err); break;
	case LIMIT:
		r = read_amount(key, text, LIMIT_LEAST, &row->bounds.limit, err);
		break;
	case PRIORITY:
		r = read_number(
			key, text, -SL_PRIORITY_MAX, SL_PRIORITY_MAX, &number, err);
		row->bounds.has_priority = true;
		row->bounds.priority = (int32_t)number;
		break;
	default:
		r = read_number(key, text, 1, 100000, &number, err);
		row->bounds.workloads = (uint32_t)number;
	}
	row->set |= bit;
	return r;
}

/* --- finding ------------------------------------------------------------------------------ */

/* UNSET is the most generous of all. */
static struct sl_amount larger(struct sl_amount a, struct sl_amount b, uint64_t shareable)
{
	if (a.kind == SL_AMOUNT_UNSET || b.kind == SL_AMOUNT_UNSET)
		return (struct sl_amount){0};
	return sl_amount_resolve(&a, shareable, 0) >= sl_amount_resolve(&b, shareable, 0)
		       ? a
		       : b;
}

static struct sl_bounds more_generous(
	const struct sl_bounds *a, const struct sl_bounds *b, uint64_t shareable)
{
	struct sl_bounds out = {
		.request = larger(a->request, b->request, shareable),
		.limit = larger(a->limit, b->limit, shareable),
		.has_priority = a->has_priority && b->has_priority,
	};

	if (out.has_priority)
		out.priority = a->priority > b->priority ? a->priority : b->priority;
	if (a->workloads && b->workloads)
		out.workloads = a->workloads > b->workloads ? a->workloads : b->workloads;
	return out;
}

static bool is_in(uint32_t gid, const uint32_t gids[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (gids[i] == gid)
			return true;
	}
	return false;
}

struct sl_bounds sl_config_bounds_of(const struct sl_config_bounds *bounds, uint32_t uid,
	bool free, const uint32_t gids[], size_t gid_count, uint64_t shareable_bytes)
{
	struct sl_bounds found = {0}, everybody = {0};
	bool any = false;

	for (uint32_t i = 0; i < bounds->count; i++) {
		const struct sl_config_bound *row = &bounds->rows[i];

		if (row->subject == SL_CONFIG_USER && row->id == uid)
			return row->bounds;
		if (row->subject == SL_CONFIG_DEFAULT)
			everybody = row->bounds;
		if (row->subject != SL_CONFIG_OF_GROUP ||
			!is_in(row->id, gids, gid_count))
			continue;
		found = any ? more_generous(&found, &row->bounds, shareable_bytes)
			    : row->bounds;
		any = true;
	}
	if (free)
		return (struct sl_bounds){0};
	return any ? found : everybody;
}
