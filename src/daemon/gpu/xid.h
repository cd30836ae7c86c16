/*
 * xid - what the driver's numbered errors mean on a shared GPU (xid.def)
 *
 * No state. Thread-safe.
 */
#ifndef SL_DAEMON_GPU_XID_H
#define SL_DAEMON_GPU_XID_H

#include "base/sl.h"

enum sl_xid_scope { SL_XID_NOTED = 0, SL_XID_PROCESS, SL_XID_GPU };

/* NOTED for errors that are not in the table. */
enum sl_xid_scope sl_xid_scope(uint64_t xid);
/* Half a sentence; never NULL. */
const char *sl_xid_meaning(uint64_t xid);

#endif
