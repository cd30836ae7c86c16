/*
 * faults - is a fault plan one that the software GPU understands?
 *
 * The software GPU reads the plan itself, in every program inside; here it is only judged, so that
 * a slip is refused before anything starts. Pure. The grammar is in softgpu/link/box.h.
 */
#ifndef SL_CLI_VERBS_FAULTS_H
#define SL_CLI_VERBS_FAULTS_H

#include "base/error.h"

enum { SL_FAULTS_OK = 0, SL_FAULTS_BAD /* err names the row and the remedy */ };

SL_MUST_CHECK int sl_faults_check(const char *plan, struct sl_error *err);

#endif
