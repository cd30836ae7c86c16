/*
 * The stub of sluice-move; play.h says what it does.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/move.h"
#include "play.h"

/* Long enough for a daemon that would send too early. */
#define LISTEN_MS 100

static const char *folder;
static struct sl_move_answer crowd[PLAY_CROWD_SIZE];
static unsigned int crowd_here, crowd_total;

static bool has(const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

/* True once for each folder. */
static bool first(void)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/died", folder);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void note(const char *what, const char *more)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/log", folder);
	fd = open(path, O_CREAT | O_APPEND | O_WRONLY, 0666);
	if (fd < 0 || dprintf(fd, "%s %s\n", what, more) < 0)
		_exit(3);
	close(fd);
}

static void say(const void *message, size_t size)
{
	if (send(SL_MOVE_FD, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		_exit(2);
}

static bool more_comes(void)
{
	struct pollfd in = {.fd = SL_MOVE_FD, .events = POLLIN};

	return poll(&in, 1, LISTEN_MS) > 0;
}

static void in_crowd(const struct sl_move_answer *answer)
{
	bool too_many;

	crowd[crowd_here++] = *answer;
	crowd_total++;
	if (crowd_total != PLAY_CROWD_SIZE && crowd_here < SL_MOVE_ORDERS_MAX)
		return;
	too_many = more_comes();
	while (crowd_here > 0) {
		crowd_here--;
		crowd[crowd_here].outcome = too_many ? SL_MOVE_BROKEN : SL_MOVE_DONE;
		say(&crowd[crowd_here], sizeof(*crowd));
	}
}

/* What comes before the answer; false: no answer follows. */
static bool play(const struct sl_move_order *order, struct sl_move_answer *answer)
{
	bool back = order->op == SL_MOVE_BACK;
	char longer[sizeof(*answer) + 8] = "";

	switch (order->pid) {
	case PLAY_REFUSED:
		answer->outcome = SL_MOVE_REFUSED;
		answer->cuda_result = 600;
		answer->at = SL_MOVE_CALL_LOCK;
		break;
	case PLAY_DIE: _exit(1);
	case PLAY_DIE_ONCE:
		if (first())
			_exit(1);
		break;
	case PLAY_DIE_AWAY:
		if (!back)
			_exit(1);
		break;
	case PLAY_HANG_ONCE:
		if (first())
			pause();
		break;
	case PLAY_STUCK:
	case PLAY_STUCK_BACK:
		if (back && order->pid == PLAY_STUCK)
			break;
		answer->outcome = SL_MOVE_AWAY_STILL;
		answer->cuda_result = 700;
		answer->at = SL_MOVE_CALL_UNLOCK;
		break;
	case PLAY_UNABLE:
		answer->outcome = SL_MOVE_UNABLE;
		answer->cuda_result = 100;
		answer->at = SL_MOVE_CALL_INIT;
		break;
	case PLAY_ALONE:
		if (!back && more_comes())
			answer->outcome = SL_MOVE_BROKEN;
		break;
	case PLAY_SHORT:
		if (first())
			say(answer, sizeof(*answer) - 1);
		break;
	case PLAY_LONG:
		if (first())
			say(longer, sizeof(longer));
		break;
	case PLAY_OTHER_ORDER: answer->order += first() ? 1 : 0; break;
	case PLAY_BAD_OUTCOME:
		answer->outcome = first() ? SL_MOVE_OUTCOMES + 1 : SL_MOVE_DONE;
		break;
	case PLAY_BAD_CALL: answer->at = first() ? SL_MOVE_CALLS_COUNT : 0; break;
	case PLAY_READY_AGAIN:
		answer->outcome = first() ? SL_MOVE_READY : SL_MOVE_DONE;
		break;
	case PLAY_TWICE: say(answer, sizeof(*answer)); break;
	default:
		if (order->pid < PLAY_CROWD)
			break;
		in_crowd(answer);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct sl_move_answer answer = {.outcome = SL_MOVE_READY};
	struct sl_move_order order;
	char text[64];

	/* Stubs of several users share the log. */
	(void)umask(0);
	folder = getenv("SLUICE_SOFTGPU");
	if (!folder || argc != 4)
		return 64;
	(void)snprintf(text, sizeof(text), "%s %s %s", argv[1], argv[2], argv[3]);
	note("start", text);
	for (char **at = environ; *at; at++) {
		(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(*at, "="), *at);
		note("variable", text);
	}
	if (has("never-ready"))
		return 77;
	if (has("slow-start"))
		pause();
	say(&answer, sizeof(answer));
	while (recv(SL_MOVE_FD, &order, sizeof(order), 0) == (ssize_t)sizeof(order)) {
		(void)snprintf(text, sizeof(text), "%d", order.pid);
		note(order.op == SL_MOVE_BACK ? "back" : "away", text);
		for (uint32_t i = 0; i < order.pairs; i++) {
			(void)snprintf(text, sizeof(text), "%u-%u",
				order.pair[i].from[15], order.pair[i].to[15]);
			note("pair", text);
		}
		answer = (struct sl_move_answer){.order = order.order, .span_ns = 5};
		if (play(&order, &answer))
			say(&answer, sizeof(answer));
	}
	return 0;
}
