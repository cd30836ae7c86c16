/*
 * resources - the compute resource that a request names
 */
#ifndef SL_DAEMON_WEB_RESOURCES_H
#define SL_DAEMON_WEB_RESOURCES_H

#include "daemon/jobs/compute.h"
#include "daemon/web/values.h"

/* Reads the member `resource`; without it: one GPU, nothing else set. False: it was refused, with
 * result *r. */
SL_MUST_CHECK bool sl_page_resource_of(
	struct sl_page_request *request, struct sl_compute *out, enum MHD_Result *r);

#endif
