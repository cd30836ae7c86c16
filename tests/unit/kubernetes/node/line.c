/* The line to a real sluiced: calls, rows, its death and the next one. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cluster/kubernetes/node/line.h"
#include "../../daemon/rig.h"

static struct {
	struct rig rig;
	sd_event *loop;
	struct sl_line *line;
	unsigned int ups, downs, rows, answers, ends, failures;
	char down[SL_ERROR_TEXT_MAX];
	bool asks_again;
} t;

static void on_up(void *context)
{
	t.ups++;
}

static void on_down(void *context, const struct sl_error *err)
{
	t.downs++;
	sl_wire_str(t.down, sizeof(t.down), err->text);
}

static void on_answer(void *context, const union sl_msg *msg, const struct sl_error *err)
{
	if (msg) {
		t.rows += msg->head.type == SL_MSG_GPU_ROW;
		t.answers += msg->head.type == SL_MSG_ENTRY_REPLY && msg->entry_reply.ok;
	} else if (err) {
		t.failures++;
	} else {
		t.ends++;
	}
}

static void turn(void)
{
	assert_true(sd_event_run(t.loop, 10000) >= 0);
}

#define UNTIL(condition)                                              \
	do {                                                          \
		sl_ns end_ = sl_clock_now() + 20 * SL_S;              \
		while (!(condition)) {                                \
			if (sl_clock_now() > end_)                    \
				fail_msg("not in time: " #condition); \
			turn();                                       \
		}                                                     \
	} while (0)

static int setup(void **state)
{
	const struct sl_line_handler handler = {.up = on_up, .down = on_down};

	memset(&t, 0, sizeof(t));
	rig_init(&t.rig, 2, 16 * RIG_GIB);
	assert_true(sd_event_new(&t.loop) >= 0);
	return sl_line_new(t.loop, t.rig.socket, &handler, &t.line);
}

static int teardown(void **state)
{
	t.line = sl_line_free(t.line);
	t.loop = sd_event_unref(t.loop);
	rig_fini(&t.rig);
	return 0;
}

static int ask_for_gpus(void)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_GPUS;
	return sl_line_call(t.line, &msg, SL_MSG_GPU_ROW, true, on_answer, &t);
}

static int end_entry(void *context)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ENTRY_END);
	sl_wire_str(msg.entry_end.key, sizeof(msg.entry_end.key), "a");
	return sl_line_call(t.line, &msg, SL_MSG_ENTRY_REPLY, false, on_answer, context);
}

static void calls_and_rows(void **state)
{
	int forgotten;

	/* No daemon is there: said once, not with each try. */
	UNTIL(t.downs == 1);
	for (int i = 0; i < 50; i++)
		turn();
	assert_int_equal(t.downs, 1);
	assert_int_equal(ask_for_gpus(), -ENOTCONN);
	rig_start(&t.rig, NULL);
	UNTIL(t.ups == 1);
	UNTIL(sl_line_is_up(t.line));
	assert_int_equal(ask_for_gpus(), 0);
	assert_int_equal(end_entry(&t), 0);
	assert_int_equal(end_entry(&forgotten), 0);
	assert_int_equal(ask_for_gpus(), 0);
	sl_line_forget(t.line, &forgotten);
	UNTIL(t.ends == 3);
	assert_int_equal(t.rows, 4);
	assert_int_equal(t.answers, 1);
	assert_int_equal(t.failures, 0);
}

static void its_death_and_the_next(void **state)
{
	rig_start(&t.rig, NULL);
	UNTIL(t.ups == 1);
	rig_kill_daemon(&t.rig);
	for (int i = 0; i < 3 && sl_line_is_up(t.line); i++)
		(void)ask_for_gpus();
	UNTIL(t.downs > 0 && !sl_line_is_up(t.line));
	assert_int_equal(t.ends, 0);
	assert_true(t.failures == 3 || t.failures == 0);
	rig_start(&t.rig, NULL);
	UNTIL(t.ups == 2);
	assert_int_equal(ask_for_gpus(), 0);
	UNTIL(t.ends == 1);
	assert_int_equal(t.rows, 2);
}

/* What sluiced does not take ends the line with its words, and so all calls. */
static void a_reject(void **state)
{
	union sl_msg msg;

	rig_start(&t.rig, NULL);
	UNTIL(t.ups == 1);
	sl_wire_init(&msg, SL_MSG_PULSE);
	assert_int_equal(
		sl_line_call(t.line, &msg, SL_MSG_ENTRY_REPLY, false, on_answer, &t), 0);
	assert_int_equal(ask_for_gpus(), 0);
	UNTIL(t.failures == 2);
	assert_non_null(strstr(t.down, "PULSE"));
	UNTIL(t.ups == 2);
}

/* A daemon that is stopped: its queue is full, and it takes nothing from it. */
static void one_that_takes_no_connections(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int fds[8];
	size_t count = 0;
	int r;

	sl_wire_str(address.sun_path, sizeof(address.sun_path), t.rig.socket);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 0), 0);
	do {
		assert_true(count < SL_ARRAY_LEN(fds));
		fds[count] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		r = connect(fds[count++], (struct sockaddr *)&address, sizeof(address));
	} while (r == 0);
	UNTIL(t.downs == 1);
	assert_non_null(strstr(t.down, "does not take connections"));
	while (count > 0)
		(void)close(fds[--count]);
	(void)close(listener);
	(void)unlink(t.rig.socket);
	rig_start(&t.rig, NULL);
	UNTIL(t.ups == 1);
}

static int forgotten;

static void on_answer_forget(
	void *context, const union sl_msg *msg, const struct sl_error *err)
{
	if (err)
		sl_line_forget(t.line, &forgotten);
	on_answer(context, msg, err);
}

/* The first callback that hears of the end of the line makes the second one pointless. */
static void forgotten_while_the_line_breaks(void **state)
{
	union sl_msg msg;

	rig_start(&t.rig, NULL);
	UNTIL(t.ups == 1);
	sl_wire_init(&msg, SL_MSG_PULSE);
	assert_int_equal(sl_line_call(t.line, &msg, SL_MSG_ENTRY_REPLY, false,
				 on_answer_forget, &t),
		0);
	assert_int_equal(end_entry(&forgotten), 0);
	UNTIL(t.failures > 0);
	UNTIL(t.ups == 2);
	assert_int_equal(t.failures, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_and_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(its_death_and_the_next, setup, teardown),
		cmocka_unit_test_setup_teardown(a_reject, setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_that_takes_no_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(
			forgotten_while_the_line_breaks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
