/*
 * start - what the first join of a process starts
 */
#include "runtime/gate/control.h"
#include "runtime/gate/door.h"
#include "runtime/gate/residency.h"
#include "runtime/link/agent.h"
#include "runtime/link/fork.h"
#include "runtime/process/mode.h"
#include "runtime/session/measure.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"
#include "runtime/swap/swap.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* It asks the driver for the current device. */
static void on_attach(void)
{
	SL_DOOR;

	sl_measure_soon();
}

/* The environment is read here, on the program's own thread: the program may change it later. */
static int start(void)
{
	const char *token = getenv("SLUICE_WORKLOAD");
	struct sl_error err = {0};

	sl_mode_read_options();
	if (token && !sl_wire_token_parse(token, sl_session.token))
		memset(sl_session.token, 0, sizeof(sl_session.token));
	if (sl_paths_socket(sl_session.path, sizeof(sl_session.path), &err) !=
		SL_PATHS_OK) {
		sl_error_log("no daemon to join: %s", err.text);
		return -EINVAL;
	}
	sl_fork_watch();
	sl_gate_start(!sl_options.no_membarrier);
	sl_control_start();
	sl_residency_start();
	sl_swap_start();
	sl_gate_on_attach = on_attach;
	return sl_agent_start(sl_session.path);
}

int (*const sl_session_on_first_join)(void) = start;
