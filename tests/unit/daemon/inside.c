/*
 * inside - one daemon at a time, because rig's waiting has to know which
 */
#include "inside.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "daemon/loop/saving.h"
#include "daemon/loop/start.h"

static struct inside *current;

void inside_turn(struct inside *inside)
{
	for (int i = 0; i < 1000; i++) {
		if (sd_event_run(inside->daemon.loop, 2000) <= 0)
			break;
	}
}

static void turn_current(void)
{
	inside_turn(current);
}

void inside_begin(struct inside *inside)
{
	struct sl_config settings;
	struct sl_error err = {0};
	sigset_t before;

	if (sl_config_load(inside->rig.config, &settings, &err) != SL_CONFIG_OK)
		fail_msg("%s", err.text);
	sl_wire_str(
		settings.socket.text, sizeof(settings.socket.text), inside->rig.socket);
	sl_wire_str(settings.state_dir.text, sizeof(settings.state_dir.text),
		inside->rig.dir);
	(void)sigprocmask(SIG_BLOCK, NULL, &before);
	if (sl_daemon_init(&inside->daemon, &settings, inside->rig.config, NULL, &err) <
		0)
		fail_msg("%s", err.text);
	/* The daemon takes signals from a descriptor; children of the test shall get theirs. */
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	current = inside;
	rig_idle = turn_current;
}

void inside_init(struct inside *inside, const char *config)
{
	inside_init_with(inside, 1, config);
}

void inside_init_with(struct inside *inside, unsigned int gpus, const char *config)
{
	memset(inside, 0, sizeof(*inside));
	rig_init(&inside->rig, gpus, 16 * RIG_GIB);
	assert_int_equal(
		sl_file_replace(inside->rig.config, config, strlen(config), false), 0);
	inside_begin(inside);
}

static void forget_daemon(struct inside *inside)
{
	rig_idle = NULL;
	sl_daemon_fini(&inside->daemon);
	/* Memory it forgot is then lost, and LeakSanitizer says so. */
	memset(&inside->daemon, 0, sizeof(inside->daemon));
}

void inside_end(struct inside *inside)
{
	sl_saving_finish(&inside->daemon);
	forget_daemon(inside);
}

void inside_fini(struct inside *inside)
{
	forget_daemon(inside);
	rig_fini(&inside->rig);
}

struct sl_client *inside_client(struct inside *inside, const struct rig_peer *peer)
{
	struct sl_client *client = sl_map_get(&inside->daemon.clients, peer->client);

	assert_non_null(client);
	return client;
}
