/*
 * kinds - what the store keeps, and where
 */
#ifndef SL_DAEMON_STORE_KINDS_H
#define SL_DAEMON_STORE_KINDS_H

#include "base/error.h"

#define SL_STORE_RUN_FILE   "run.db"
#define SL_STORE_STATE_FILE "state.db"

enum sl_store_database { SL_STORE_RUN = 0, SL_STORE_STATE, SL_STORE_DATABASES };

enum sl_store_kind {
#define SL_KIND(name, database, table, one, many) SL_KIND_##name,
#include "daemon/store/kinds.def"
#undef SL_KIND
	SL_KINDS
};

enum {
	SL_STORE_OK = 0, /* all is read; without a database there are no records */
	SL_STORE_PARTLY, /* err names the first damaged record and the remedy */
	SL_STORE_BAD /* nothing is read; err names the database, the fault and the remedy */
};

#endif
