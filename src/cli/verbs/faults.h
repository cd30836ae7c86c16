/*
 * faults - is a fault plan valid for the software GPU?
 *
 * The software GPU reads the plan in every program inside the box. This file only checks the plan,
 * so a mistake is refused before anything starts. Pure. The grammar is in softgpu/link/box.h.
 */
#ifndef SL_CLI_VERBS_FAULTS_H
#define SL_CLI_VERBS_FAULTS_H

#include "base/error.h"

enum { SL_FAULTS_OK = 0, SL_FAULTS_BAD /* err names the row and the remedy */ };

SL_MUST_CHECK int sl_faults_check(const char *plan, struct sl_error *err);

#endif
