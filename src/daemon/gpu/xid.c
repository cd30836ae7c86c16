/*
 * xid - look-ups in a table of thirty rows
 */
#include "daemon/gpu/xid.h"

static const struct row {
	uint64_t number;
	enum sl_xid_scope scope;
	const char *meaning;
} rows[] = {
#define SL_XID(number, scope, meaning) {number, SL_XID_##scope, meaning},
#include "daemon/gpu/xid.def"
#undef SL_XID
};

static const struct row *find(uint64_t xid)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		if (rows[i].number == xid)
			return &rows[i];
	}
	return NULL;
}

enum sl_xid_scope sl_xid_scope(uint64_t xid)
{
	const struct row *row = find(xid);

	return row ? row->scope : SL_XID_NOTED;
}

const char *sl_xid_meaning(uint64_t xid)
{
	const struct row *row = find(xid);

	return row ? row->meaning : "an error that this version does not know";
}
