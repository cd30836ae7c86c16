/*
 * wire - structs as datagrams
 *
 * A message on the wire is its struct. Three things make that safe: every struct has a fixed size
 * and no padding (asserted below from the list); a datagram of another length is refused; every
 * enum and string is checked before the message is used.
 */
#include "wire/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* No padding: the fields' sizes and the head's add up to the struct's. */
#define U64(name)         +8
#define U32(name)         +4
#define ENUM(name, end)   +4
#define STR(name, size)   +(size)
#define BYTES(name, size) +(size)
#define SL_MSG(NAME, name, number, sender, fields)                                 \
	_Static_assert(                                                            \
		sizeof(struct sl_msg_##name) == sizeof(struct sl_msg_head) fields, \
		#NAME " has padding");
#include "wire/messages.def"
#undef SL_MSG
#undef U64
#undef U32
#undef ENUM
#undef STR
#undef BYTES

static bool string_is_ok(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* One check per message: returns the name of the first bad field, or NULL. */
#define U64(name)
#define U32(name)
#define BYTES(name, size)
#define ENUM(name, end)                 \
	if (m->name >= (uint32_t)(end)) \
		return #name;
#define STR(name, size)                   \
	if (!string_is_ok(m->name, size)) \
		return #name;
#define SL_MSG(NAME, name, number, sender, fields)                     \
	static const char *check_##name(const struct sl_msg_##name *m) \
	{                                                              \
		(void)m;                                               \
		fields return NULL;                                    \
	}
#include "wire/messages.def"
#undef SL_MSG
#undef U64
#undef U32
#undef BYTES
#undef ENUM
#undef STR

#define SL_FROM_PEER (SL_FROM_CLIENT | SL_FROM_CONTROL)

struct row {
	const char *name;
	uint32_t size, from;
};

static const struct row rows[] = {
#define SL_MSG(NAME, name, number, sender, fields) \
	[number] = {#NAME, sizeof(struct sl_msg_##name), SL_FROM_##sender},
#include "wire/messages.def"
#undef SL_MSG
};

static const struct row *row_of(uint32_t type)
{
	return type < SL_ARRAY_LEN(rows) && rows[type].name ? &rows[type] : NULL;
}

static const char *bad_field(const union sl_msg *msg)
{
	switch (msg->head.type) {
#define SL_MSG(NAME, name, number, sender, fields) \
	case number:                               \
		return check_##name(&msg->name);
#include "wire/messages.def"
#undef SL_MSG
	default: return "type";
	}
}

void sl_wire_init(union sl_msg *msg, enum sl_msg_type type)
{
	memset(msg, 0, sizeof(*msg));
	msg->head.type = type;
	msg->head.version = SL_PROTOCOL_VERSION;
}

size_t sl_wire_size(uint32_t type)
{
	const struct row *row = row_of(type);

	return row ? row->size : 0;
}

const char *sl_wire_name(uint32_t type)
{
	const struct row *row = row_of(type);

	return row ? row->name : "?";
}

int sl_wire_decode(const void *data, size_t size, unsigned int from, union sl_msg *out,
	struct sl_error *err)
{
	const struct row *row;
	const char *field;

	if (size < sizeof(struct sl_msg_head) || size > sizeof(*out)) {
		sl_error_set(err, "a message of %zu bytes, which none has", size);
		return SL_WIRE_BAD;
	}
	memset(out, 0, sizeof(*out));
	memcpy(out, data, size);
	row = row_of(out->head.type);
	/* HELLO and REJECT are the same in every version, so both ends can name the version that
	 * differs. */
	if (out->head.version != SL_PROTOCOL_VERSION && out->head.type != SL_MSG_REJECT) {
		sl_error_set(err,
			"it speaks protocol version %u, and this is version %u; install "
			"all of Sluice from one release",
			out->head.version, SL_PROTOCOL_VERSION);
		return SL_WIRE_OTHER_VERSION;
	}
	if (!row || !(row->from & from)) {
		sl_error_set(err, "message type %u (%s), which is not for this direction",
			out->head.type, row ? row->name : "unknown");
		return SL_WIRE_BAD;
	}
	if (size != row->size) {
		sl_error_set(
			err, "%s of %zu bytes instead of %u", row->name, size, row->size);
		return SL_WIRE_BAD;
	}
	field = bad_field(out);
	if (field) {
		sl_error_set(err, "%s with a bad field '%s'", row->name, field);
		return SL_WIRE_BAD;
	}
	return SL_WIRE_OK;
}

int sl_wire_send(int fd, const union sl_msg *msg)
{
	size_t size = sl_wire_size(msg->head.type);
	ssize_t n;

	if (size == 0)
		return sl_err_origin(-EINVAL);
	do {
		n = send(fd, msg, size, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return SL_WIRE_OK;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return SL_WIRE_AGAIN;
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
		return SL_WIRE_CLOSED;
	return sl_err_origin(-errno);
}

/* SL_WIRE_OK: a datagram was received; else CLOSED, AGAIN or negative errno. data has one byte more
 * than the largest message, so a longer datagram is noticed. */
static int receive(int fd, struct msghdr *header, ssize_t *size)
{
	do {
		*size = recvmsg(fd, header, MSG_CMSG_CLOEXEC);
	} while (*size < 0 && errno == EINTR);
	if (*size > 0)
		return SL_WIRE_OK;
	if (*size == 0)
		return SL_WIRE_CLOSED;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return SL_WIRE_AGAIN;
	if (errno == ECONNRESET || errno == ENOTCONN)
		return SL_WIRE_CLOSED;
	return sl_err_origin(-errno);
}

int sl_wire_recv(int fd, unsigned int from, union sl_msg *out, struct sl_error *err)
{
	_Alignas(8) unsigned char data[sizeof(union sl_msg) + 1];
	struct iovec part = {.iov_base = data, .iov_len = sizeof(data)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;
	/* Without a control buffer the kernel drops descriptors that a peer passes along. */
	int r = receive(fd, &header, &n);

	return r == SL_WIRE_OK ? sl_wire_decode(data, (size_t)n, from, out, err) : r;
}

void sl_wire_proof(union sl_msg *out, const union sl_msg *challenge)
{
	sl_wire_init(out, SL_MSG_PROOF);
	memcpy(out->proof.nonce, challenge->challenge.nonce, sizeof(out->proof.nonce));
}

/* --- with descriptors ------------------------------------------------------------------------ */

/* How many descriptors come with it. */
static uint32_t fds_of(const union sl_msg *msg)
{
	switch (msg->head.type) {
	case SL_MSG_IPC_GIVE: return msg->ipc_give.fds;
	case SL_MSG_IPC_TAKE: return msg->ipc_take.fds;
	case SL_MSG_STORE:
	case SL_MSG_STORE_HELD:
	case SL_MSG_SUBMIT:
	case SL_MSG_JOB_LOG_FILE:
	case SL_MSG_HISTORY_FILE: return 1;
	default: return 0;
	}
}

bool sl_wire_carries(uint32_t type)
{
	switch (type) {
	case SL_MSG_IPC_GIVE:
	case SL_MSG_IPC_TAKE:
	case SL_MSG_STORE:
	case SL_MSG_STORE_HELD:
	case SL_MSG_SUBMIT:
	case SL_MSG_JOB_LOG_FILE:
	case SL_MSG_HISTORY_FILE: return true;
	default: return false;
	}
}

void sl_wire_attach(struct msghdr *header, union sl_wire_control *control, const int *fds,
	uint32_t count)
{
	struct cmsghdr *part;

	memset(control, 0, sizeof(*control));
	header->msg_control = control->bytes;
	header->msg_controllen = CMSG_SPACE(count * sizeof(int));
	part = CMSG_FIRSTHDR(header);
	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(part), fds, count * sizeof(int));
}

int sl_wire_send_fds(int fd, const union sl_msg *msg, const int *fds, uint32_t count)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)msg,
		.iov_len = sl_wire_size(msg->head.type)};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	union sl_wire_control control;
	ssize_t n;

	if (!sl_wire_carries(msg->head.type) || count == 0 || count > SL_WIRE_FDS_MAX)
		return sl_err_origin(-EINVAL);
	sl_wire_attach(&header, &control, fds, count);
	do {
		n = sendmsg(fd, &header, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return SL_WIRE_OK;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return SL_WIRE_AGAIN;
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
		return SL_WIRE_CLOSED;
	return sl_err_origin(-errno);
}

void sl_wire_fds_close(struct sl_wire_fds *fds)
{
	for (uint32_t i = 0; i < fds->count; i++)
		(void)close(fds->fd[i]);
	fds->count = 0;
}

/* Takes every descriptor in the control data: one left here would never be closed. */
static void take_control(struct msghdr *header, struct sl_wire_fds *fds)
{
	struct cmsghdr *part;

	for (part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
		size_t bytes = part->cmsg_len - CMSG_LEN(0);
		struct ucred sender;

		if (part->cmsg_level == SOL_SOCKET &&
			part->cmsg_type == SCM_CREDENTIALS && bytes >= sizeof(sender)) {
			memcpy(&sender, CMSG_DATA(part), sizeof(sender));
			fds->sender = sender.pid;
		}
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		bytes = sl_min_u64(bytes, (SL_WIRE_FDS_ROOM - fds->count) * sizeof(int));
		memcpy(fds->fd + fds->count, CMSG_DATA(part), bytes);
		fds->count += (uint32_t)(bytes / sizeof(int));
	}
	fds->missing = (header->msg_flags & MSG_CTRUNC) != 0;
}

/* Compares with the number that the message states. Fewer is allowed if this process has reached
 * its own limit of descriptors. */
static int check_fds(
	const union sl_msg *msg, struct sl_wire_fds *fds, struct sl_error *err)
{
	uint32_t wanted = fds_of(msg);

	if (!sl_wire_carries(msg->head.type))
		return SL_WIRE_OK;
	if (wanted >= 1 && wanted <= SL_WIRE_FDS_MAX &&
		(fds->count == wanted || (fds->missing && fds->count < wanted)))
		return SL_WIRE_OK;
	sl_error_set(err, "%s with %u descriptors that says it has %u",
		sl_wire_name(msg->head.type), fds->count, wanted);
	return SL_WIRE_BAD;
}

int sl_wire_recv_fds(int fd, unsigned int from, union sl_msg *out,
	struct sl_wire_fds *fds, struct sl_error *err)
{
	_Alignas(8) unsigned char data[sizeof(union sl_msg) + 1];
	struct iovec part = {.iov_base = data, .iov_len = sizeof(data)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(SL_WIRE_FDS_ROOM * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct msghdr header = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n;
	int r = receive(fd, &header, &n);

	fds->count = 0;
	fds->sender = 0;
	fds->missing = false;
	if (r != SL_WIRE_OK)
		return r;
	take_control(&header, fds);
	r = sl_wire_decode(data, (size_t)n, from, out, err);
	return r == SL_WIRE_OK ? check_fds(out, fds, err) : r;
}

/* Peeks without room for descriptors: the kernel then reports that they were cut off. */
bool sl_wire_brings_fds(int fd)
{
	char first;
	struct iovec part = {.iov_base = &first, .iov_len = 1};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	do {
		n = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n >= 0 && header.msg_flags & MSG_CTRUNC;
}

void sl_wire_str(char *dest, size_t size, const char *text)
{
	size_t length = strlen(text);

	memset(dest, 0, size);
	if (length >= size) {
		length = size - 1;
		/* Never cut within a UTF-8 character: step back over continuation bytes. */
		while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(dest, text, length);
}

static int connect_as(int flags, const char *path, struct sl_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path)) {
		sl_error_set(err, "the socket path %.120s is longer than %zu bytes", path,
			sizeof(address.sun_path) - 1);
		return sl_err_origin(-ENAMETOOLONG);
	}
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
	if (fd < 0) {
		r = -errno;
		sl_error_set(err, "cannot make a socket: %s", strerror(-r));
		return sl_err_origin(r);
	}
	do {
		r = connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0
			    ? -errno
			    : 0;
	} while (r == -EINTR);
	if (r < 0) {
		(void)close(fd);
		sl_error_set(err, "no daemon answers at %s: %s", path,
			r == -EAGAIN ? "it does not take connections" : strerror(-r));
		return sl_err_origin(r);
	}
	return fd;
}

int sl_wire_connect(const char *path, struct sl_error *err)
{
	return connect_as(0, path, err);
}

int sl_wire_connect_now(const char *path, struct sl_error *err)
{
	return connect_as(SOCK_NONBLOCK, path, err);
}

static const char hex_digits[] = "0123456789abcdef";

static int hex_value(char c)
{
	const char *at = c ? strchr(hex_digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;

	return at ? (int)(at - hex_digits) : -1;
}

void sl_wire_token_format(const uint8_t token[SL_WIRE_TOKEN_BYTES], char text[33])
{
	for (size_t i = 0; i < SL_WIRE_TOKEN_BYTES; i++) {
		text[2 * i] = hex_digits[token[i] >> 4];
		text[2 * i + 1] = hex_digits[token[i] & 15];
	}
	text[32] = '\0';
}

/* Reads 32 hex digits; skips '-' if dashes is set. */
static bool parse_hex(const char *text, bool dashes, uint8_t out[16])
{
	size_t digits = 0;

	for (; *text; text++) {
		int value = hex_value(*text);

		if (dashes && *text == '-')
			continue;
		if (value < 0 || digits == 32)
			return false;
		if (digits % 2 == 0)
			out[digits / 2] = (uint8_t)(value << 4);
		else
			out[digits / 2] |= (uint8_t)value;
		digits++;
	}
	return digits == 32;
}

bool sl_wire_token_parse(const char *text, uint8_t token[SL_WIRE_TOKEN_BYTES])
{
	return parse_hex(text, false, token);
}

void sl_wire_uuid_format(const uint8_t uuid[SL_WIRE_UUID_BYTES], char text[41])
{
	char *at = text;

	memcpy(at, "GPU-", 4);
	at += 4;
	for (size_t i = 0; i < SL_WIRE_UUID_BYTES; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = hex_digits[uuid[i] >> 4];
		*at++ = hex_digits[uuid[i] & 15];
	}
	*at = '\0';
}

bool sl_wire_uuid_parse(const char *text, uint8_t uuid[SL_WIRE_UUID_BYTES])
{
	return strncmp(text, "GPU-", 4) == 0 && strlen(text) == 40 &&
	       parse_hex(text + 4, true, uuid);
}

const char *sl_wire_job_state(uint32_t state)
{
	static const char *const names[SL_JOB_STATES] = {
		[SL_JOB_QUEUED] = "queued",
		[SL_JOB_RUNNING] = "running",
		[SL_JOB_PARKED] = "parked",
		[SL_JOB_STOPPING] = "stopping",
		[SL_JOB_DONE] = "done",
		[SL_JOB_FAILED] = "failed",
		[SL_JOB_STOPPED] = "stopped",
	};

	return state < SL_JOB_STATES ? names[state] : "?";
}
