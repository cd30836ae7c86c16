#include "../base/test.h"

#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FROM_ALL (SL_FROM_CLIENT | SL_FROM_CONTROL | SL_FROM_DAEMON)

static const struct {
	const char *name;
	uint32_t number;
	size_t size;
} messages[] = {
#define SL_MSG(NAME, name, number, sender, fields) \
	{#NAME, number, sizeof(struct sl_msg_##name)},
#include "wire/messages.def"
#undef SL_MSG
};

/* Every message: unique number and name, decodes as it was made, and at no other length. */
static void test_every_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(messages); i++) {
		unsigned char bytes[sizeof(union sl_msg) + 1] = {0};
		union sl_msg msg, back;

		for (size_t k = 0; k < i; k++) {
			assert_int_not_equal(messages[i].number, messages[k].number);
			assert_string_not_equal(messages[i].name, messages[k].name);
		}
		sl_wire_init(&msg, messages[i].number);
		assert_row_u64(messages[i].name, sl_wire_size(messages[i].number),
			messages[i].size);
		assert_row_text(messages[i].name, sl_wire_name(messages[i].number),
			messages[i].name);
		assert_int_equal(
			sl_wire_decode(&msg, messages[i].size, FROM_ALL, &back, NULL),
			SL_WIRE_OK);
		assert_memory_equal(&msg, &back, messages[i].size);
		memcpy(bytes, &msg, sizeof(msg));
		for (size_t size = 0; size <= sizeof(bytes); size++)
			assert_row_u64(messages[i].name,
				(uint64_t)sl_wire_decode(
					bytes, size, FROM_ALL, &back, NULL),
				size == messages[i].size ? SL_WIRE_OK : SL_WIRE_BAD);
	}
}

static void test_refused(void **state)
{
	struct sl_error err = {{0}};
	union sl_msg msg, back;

	(void)state;
	sl_wire_init(&msg, SL_MSG_ASK);
	assert_int_equal(
		sl_wire_decode(&msg, sizeof(msg.ask), SL_FROM_CLIENT, &back, &err),
		SL_WIRE_OK);
	assert_int_equal(
		sl_wire_decode(&msg, sizeof(msg.ask), SL_FROM_DAEMON, &back, &err),
		SL_WIRE_BAD);
	assert_row_contains("direction", err.text, "ASK");
	msg.head.version = SL_PROTOCOL_VERSION + 1;
	assert_int_equal(
		sl_wire_decode(&msg, sizeof(msg.ask), SL_FROM_CLIENT, &back, &err),
		SL_WIRE_OTHER_VERSION);
	assert_row_contains("version", err.text,
		"this is version " SL_STRINGIFY(SL_PROTOCOL_VERSION));
	msg.head.version = SL_PROTOCOL_VERSION;
	msg.head.type = 9999;
	assert_int_equal(
		sl_wire_decode(&msg, sizeof(msg.ask), SL_FROM_CLIENT, &back, &err),
		SL_WIRE_BAD);
	/* A rejection from another version must be readable. */
	sl_wire_init(&msg, SL_MSG_REJECT);
	msg.head.version = 7;
	assert_int_equal(
		sl_wire_decode(&msg, sizeof(msg.reject), SL_FROM_DAEMON, &back, &err),
		SL_WIRE_OK);
	/* Enums past their end and strings without one. */
	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLES;
	assert_int_equal(
		sl_wire_decode(&msg, sizeof(msg.hello), SL_FROM_CLIENT, &back, &err),
		SL_WIRE_BAD);
	assert_row_contains("enum", err.text, "'role'");
	msg.hello.role = 0;
	memset(msg.hello.version, 'x', sizeof(msg.hello.version));
	assert_int_equal(
		sl_wire_decode(&msg, sizeof(msg.hello), SL_FROM_CLIENT, &back, &err),
		SL_WIRE_BAD);
	assert_row_contains("string", err.text, "'version'");
}

static void test_sockets(void **state)
{
	union sl_msg msg, back;
	char junk[3] = "ab";
	int ends[2], before, sent;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(sl_wire_recv(ends[1], FROM_ALL, &back, NULL), SL_WIRE_AGAIN);
	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.bytes = 42;
	assert_int_equal(sl_wire_send(ends[0], &msg), SL_WIRE_OK);
	assert_int_equal(sl_wire_recv(ends[1], FROM_ALL, &back, NULL), SL_WIRE_OK);
	assert_int_equal(back.ask.bytes, 42);
	assert_int_equal(send(ends[0], junk, sizeof(junk), 0), sizeof(junk));
	assert_int_equal(sl_wire_recv(ends[1], FROM_ALL, &back, NULL), SL_WIRE_BAD);
	for (sent = 0; sent < 100000; sent++)
		if (sl_wire_send(ends[0], &msg) != SL_WIRE_OK)
			break;
	assert_in_range(sent, 1, 99999);
	assert_int_equal(sl_wire_send(ends[0], &msg), SL_WIRE_AGAIN);
	while (sl_wire_recv(ends[1], FROM_ALL, &back, NULL) == SL_WIRE_OK) {
	}
	/* Descriptors passed along do not pile up here. */
	{
		union {
			struct cmsghdr align;
			char room[CMSG_SPACE(sizeof(int))];
		} control = {0};
		struct iovec part = {&msg, sizeof(msg.ask)};
		struct msghdr header = {.msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = control.room,
			.msg_controllen = sizeof(control.room)};
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &ends[0], sizeof(int));
		assert_true(sendmsg(ends[0], &header, 0) > 0);
	}
	before = dup(0);
	close(before);
	assert_int_equal(sl_wire_recv(ends[1], FROM_ALL, &back, NULL), SL_WIRE_OK);
	sent = dup(0);
	assert_int_equal(sent, before);
	close(sent);
	close(ends[0]);
	assert_int_equal(sl_wire_send(ends[1], &msg), SL_WIRE_CLOSED);
	assert_int_equal(sl_wire_recv(ends[1], FROM_ALL, &back, NULL), SL_WIRE_CLOSED);
	close(ends[1]);
}

/* Descriptors that this process has now. */
static unsigned int open_fds(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 512; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Sends a message that says it has `says` descriptors with `has` of them (any number of them). */
static void send_odd(int fd, enum sl_msg_type type, uint32_t says, unsigned int has)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(64 * sizeof(int))];
	} control = {0};
	union sl_msg msg;
	struct iovec part = {&msg, 0};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	sl_wire_init(&msg, type);
	if (type == SL_MSG_IPC_GIVE)
		msg.ipc_give.fds = says;
	part.iov_len = sl_wire_size(type);
	if (has) {
		struct cmsghdr *c = &control.align;

		header.msg_control = control.room;
		header.msg_controllen = CMSG_SPACE(has * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(has * sizeof(int));
		for (unsigned int i = 0; i < has; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	}
	assert_true(sendmsg(fd, &header, 0) > 0);
}

static void test_descriptors(void **state)
{
	static const struct {
		const char *name;
		enum sl_msg_type type;
		uint32_t says, has;
		int outcome;
	} rows[] = {
		{"one", SL_MSG_IPC_GIVE, 1, 1, SL_WIRE_OK},
		{"the most", SL_MSG_IPC_GIVE, SL_WIRE_FDS_MAX, SL_WIRE_FDS_MAX,
			SL_WIRE_OK},
		{"none said, none there", SL_MSG_IPC_GIVE, 0, 0, SL_WIRE_BAD},
		{"one said, none there", SL_MSG_IPC_GIVE, 1, 0, SL_WIRE_BAD},
		{"fewer", SL_MSG_IPC_GIVE, 3, 2, SL_WIRE_BAD},
		{"more", SL_MSG_IPC_GIVE, 2, 3, SL_WIRE_BAD},
		{"more than fit", SL_MSG_IPC_GIVE, SL_WIRE_FDS_MAX, 60, SL_WIRE_BAD},
		{"more than there may be", SL_MSG_IPC_GIVE, 60, 60, SL_WIRE_BAD},
		{"nonsense", SL_MSG_IPC_GIVE, UINT32_MAX, 1, SL_WIRE_BAD},
		{"unwelcome", SL_MSG_ASK, 0, 5, SL_WIRE_OK},
		{"unwelcome, and many", SL_MSG_ASK, 0, 60, SL_WIRE_OK},
		{"of the other side", SL_MSG_IPC_TAKE, 1, 1, SL_WIRE_BAD},
	};
	unsigned int before;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	before = open_fds();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_wire_fds fds;
		union sl_msg msg;

		send_odd(ends[0], rows[i].type, rows[i].says, rows[i].has);
		assert_row_u64(rows[i].name,
			(uint64_t)sl_wire_recv_fds(
				ends[1], SL_FROM_CLIENT, &msg, &fds, NULL),
			(uint64_t)rows[i].outcome);
		assert_row_u64(rows[i].name, fds.count, rows[i].has);
		assert_row_u64(rows[i].name, open_fds(), before + rows[i].has);
		for (uint32_t k = 0; k < fds.count; k++)
			assert_int_equal(fcntl(fds.fd[k], F_GETFD), FD_CLOEXEC);
		sl_wire_fds_close(&fds);
		assert_row_u64(rows[i].name, open_fds(), before);
	}
	close(ends[0]);
	close(ends[1]);
}

/* Those that bring exactly one. */
static void test_one_descriptor(void **state)
{
	static const struct {
		const char *name;
		enum sl_msg_type type;
		unsigned int has;
		int outcome;
	} rows[] = {
		{"a job", SL_MSG_SUBMIT, 1, SL_WIRE_OK},
		{"a job without what it executes", SL_MSG_SUBMIT, 0, SL_WIRE_BAD},
		{"a job with more", SL_MSG_SUBMIT, 2, SL_WIRE_BAD},
		{"a log", SL_MSG_JOB_LOG_FILE, 1, SL_WIRE_OK},
		{"a log that is not there", SL_MSG_JOB_LOG_FILE, 0, SL_WIRE_BAD},
		{"a log and more", SL_MSG_JOB_LOG_FILE, 2, SL_WIRE_BAD},
		{"a history", SL_MSG_HISTORY_FILE, 1, SL_WIRE_OK},
		{"a history that is not there", SL_MSG_HISTORY_FILE, 0, SL_WIRE_BAD},
	};
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_wire_fds fds;
		union sl_msg msg;

		assert_true(sl_wire_carries(rows[i].type));
		send_odd(ends[0], rows[i].type, 0, rows[i].has);
		assert_row_u64(rows[i].name,
			(uint64_t)sl_wire_recv_fds(ends[1], FROM_ALL, &msg, &fds, NULL),
			(uint64_t)rows[i].outcome);
		sl_wire_fds_close(&fds);
	}
	close(ends[0]);
	close(ends[1]);
}

/* A descriptor that this process may not have is missing, and the receiver says so; the
 * others come. */
static void test_no_descriptors_left(void **state)
{
	struct rlimit old, tight;
	struct sl_wire_fds fds;
	union sl_msg msg;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	send_odd(ends[0], SL_MSG_IPC_GIVE, 8, 8);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = old;
	tight.rlim_cur = (rlim_t)ends[1] + 4;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	assert_int_equal(
		sl_wire_recv_fds(ends[1], SL_FROM_CLIENT, &msg, &fds, NULL), SL_WIRE_OK);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(fds.missing);
	assert_int_equal(fds.count, 3);
	sl_wire_fds_close(&fds);
	close(ends[0]);
	close(ends[1]);
}

/* The same files arrive in the same order. */
static void test_send_descriptors(void **state)
{
	struct stat sent, came;
	struct sl_wire_fds fds;
	union sl_msg msg;
	int ends[2], pipes[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(pipe(pipes), 0);
	sl_wire_init(&msg, SL_MSG_IPC_TAKE);
	msg.ipc_take.fds = 2;
	assert_int_equal(sl_wire_send_fds(ends[0], &msg, pipes, 0), -EINVAL);
	assert_int_equal(
		sl_wire_send_fds(ends[0], &msg, pipes, SL_WIRE_FDS_MAX + 1), -EINVAL);
	assert_int_equal(sl_wire_send_fds(ends[0], &msg, pipes, 2), SL_WIRE_OK);
	assert_int_equal(
		sl_wire_recv_fds(ends[1], SL_FROM_DAEMON, &msg, &fds, NULL), SL_WIRE_OK);
	assert_int_equal(fds.count, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fstat(pipes[i], &sent), 0);
		assert_int_equal(fstat(fds.fd[i], &came), 0);
		assert_int_equal(sent.st_ino, came.st_ino);
	}
	sl_wire_fds_close(&fds);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(pipes[i]);
	}
}

static void test_connect(void **state)
{
	struct sl_error err = {{0}};
	char longest[200];

	(void)state;
	assert_true(sl_wire_connect("/nowhere/at/all.sock", &err) < 0);
	assert_row_contains("absent", err.text, "/nowhere/at/all.sock");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(sl_wire_connect(longest, &err), -ENAMETOOLONG);
}

static void test_texts(void **state)
{
	uint8_t raw[16], back[16];
	char text[41], cut[8];

	(void)state;
	for (int i = 0; i < 16; i++)
		raw[i] = (uint8_t)(i * 17 + 3);
	sl_wire_token_format(raw, text);
	assert_int_equal(strlen(text), 32);
	assert_true(sl_wire_token_parse(text, back));
	assert_memory_equal(raw, back, 16);
	text[5] = 'g';
	assert_false(sl_wire_token_parse(text, back));
	assert_false(sl_wire_token_parse("", back));
	assert_false(sl_wire_token_parse("00112233445566778899aabbccddeeff0", back));
	sl_wire_uuid_format(raw, text);
	assert_int_equal(strlen(text), 40);
	assert_true(sl_wire_uuid_parse(text, back));
	assert_memory_equal(raw, back, 16);
	assert_false(sl_wire_uuid_parse("GPU-12", back));
	assert_false(sl_wire_uuid_parse(text + 1, back));
	sl_wire_str(cut, sizeof(cut), "abcdef\xc3\xa9");
	assert_string_equal(cut, "abcdef");
	sl_wire_str(cut, sizeof(cut), "short");
	assert_string_equal(cut, "short");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_message),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_one_descriptor),
		cmocka_unit_test(test_no_descriptors_left),
		cmocka_unit_test(test_send_descriptors),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
