/*
 * wire - projects as messages: PROJECT_PUT and PROJECT_ROW
 *
 * Both have the same fields. Check received ones with sl_project_check(). Pure.
 */
#ifndef SL_DAEMON_PROJECTS_WIRE_H
#define SL_DAEMON_PROJECTS_WIRE_H

#include "daemon/projects/projects.h"
#include "wire/wire.h"

void sl_project_to_put(const struct sl_project_row *row, struct sl_msg_project_put *msg);
void sl_project_to_row(const struct sl_project_row *row, struct sl_msg_project_row *msg);
/* The id of a PUT is ignored. */
void sl_project_from_put(
	const struct sl_msg_project_put *msg, struct sl_project_row *row);
void sl_project_from_row(
	const struct sl_msg_project_row *msg, struct sl_project_row *row);

#endif
