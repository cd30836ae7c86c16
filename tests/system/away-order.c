/*
 * away-order - the daemon's module away with the real sluice-move
 *
 * usage: away-order away|back PID...: orders them all, and writes a line for each answer: PID
 * OUTCOME CUDA_RESULT, the outcome as a number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/away/away.h"

static int open_orders;

static void done(void *context, const struct sl_away_answer *answer)
{
	char **pids = context;

	(void)printf("%s %d %d\n", pids[answer->id], (int)answer->outcome,
		answer->cuda_result);
	open_orders--;
}

int main(int argc, char **argv)
{
	struct sl_away *away = NULL;
	sd_event *loop = NULL;

	if (argc < 3 || sd_event_new(&loop) < 0 ||
		sl_away_open(loop, done, argv, &away) < 0)
		return 2;
	for (int i = 2; i < argc; i++) {
		struct sl_away_order order = {.id = (uint64_t)i,
			.uid = geteuid(),
			.gid = getegid(),
			.pid = atoi(argv[i]),
			.back = strcmp(argv[1], "back") == 0,
			.lock_ms = 2000};

		if (sl_away_order(away, &order) < 0)
			return 3;
		open_orders++;
	}
	while (open_orders > 0 && sd_event_run(loop, UINT64_MAX) >= 0)
		;
	(void)sl_away_close(away);
	(void)sd_event_unref(loop);
	return open_orders;
}
