/* A fault in the policy, put there on purpose, by which a step would never end: the daemon answers
 * all the same, says so, and writes down what it knows. */
#include "inside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "policy/mutant.h"

static int setup(void **state)
{
	static struct inside inside;

	inside_init(&inside, "context_reserve: 1GiB\nmeasure_interval: 20ms\n"
			     "recover_wait: 1ms\n");
	*state = &inside;
	return 0;
}

static int teardown(void **state)
{
	sl_mutant_now = SL_MUTANT_OFF;
	inside_fini(*state);
	return 0;
}

static struct inside *turned;

/* There is always something to do now. */
static void turn_a_little(void)
{
	for (int i = 0; i < 10; i++)
		(void)sd_event_run(turned->daemon.loop, 2000);
}

static void it_answers_all_the_same(void **state)
{
	struct inside *inside = *state;
	struct rig *rig = &inside->rig;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 0), client = rig_join(rig, &run);
	sl_cleanup(sl_freep) char *text = NULL;
	char path[128];
	size_t size = 0;
	union sl_msg msg;

	turned = inside;
	rig_idle = turn_a_little;
	(void)snprintf(path, sizeof(path), "%s/unsettled.json", rig->dir);
	assert_int_not_equal(access(path, F_OK), 0);
	sl_mutant_now = SL_MUTANT_IS_NEVER_SETTLES;
	rig_hold(rig, &client, 1, RIG_GIB);
	rig_hold(rig, &client, 2, RIG_GIB);
	(void)rig_status(rig);
	assert_true(rig_gpu(rig).backing_bytes == 2 * RIG_GIB);
	assert_true(sl_node_left(inside->daemon.node).goes_on_at > 0);
	assert_int_equal(sl_file_read(path, 1 << 20, &text, &size), 0);
	assert_non_null(strstr(text, "\"left\":{\"gpu_mask\":"));
	assert_non_null(strstr(text, "\"demands_left_out\":0"));
	/* More than the limit: answered at once, as ever. */
	rig_ask(&client, 3, 1000 * RIG_GIB);
	rig_expect(&client, SL_MSG_DENY, &msg);
	sl_mutant_now = SL_MUTANT_OFF;
	inside_until(inside, !sl_node_left(inside->daemon.node).goes_on_at);
	rig_hold(rig, &client, 4, RIG_GIB);
	rig_peer_end(&client);
	rig_peer_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_answers_all_the_same, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
