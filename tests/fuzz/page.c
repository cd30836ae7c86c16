/*
 * The page's server, behind a real socket. Whatever comes in, it answers in HTTP or hangs up, and
 * changes nothing without a token. Each answer of its own has the headers that restrict a browser.
 * Half of the inputs are valid requests, made of the input, so that bodies reach the handlers. The
 * daemon behind them is ending, so changes are answered 503.
 *
 * A connection and its thread cost more than everything else, so most inputs only reach the pure
 * functions: the guard and the routes.
 */
#include "fuzz.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/link/inside.h"
#include "daemon/state/daemon.h"
#include "daemon/web/internal.h"

#define ANSWER_MAX (256u << 10)
#define HEAD_MAX   2048
/* A server that says nothing for so long hangs. */
#define PATIENCE_MS 20000

static struct sl_page page;
static struct sl_daemon owner;
static char token[SL_PAGE_TOKEN_ROOM];

/* A socket without a name in the file system, and one end of a connection to it. */
static int make_listener(void)
{
	static const struct sockaddr any = {.sa_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* With the family alone the kernel chooses one. */
	if (fd < 0 || bind(fd, &any, sizeof(any.sa_family)) < 0 || listen(fd, 64) < 0)
		abort();
	return fd;
}

static int dial(void)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
		getsockname(page.http.listener.fd, (struct sockaddr *)&address, &size) <
			0 ||
		connect(fd, (struct sockaddr *)&address, size) < 0)
		abort();
	return fd;
}

/* A request may have ended the one there was. */
static void need_token(void)
{
	struct sl_user *has = sl_page_tokens_find(page.tokens, token, sl_clock_now());
	struct sl_user *who = has ? NULL : sl_user_self();

	if (who && sl_page_tokens_make(page.tokens, who, sl_clock_now(), token) < 0)
		abort();
	(void)sl_user_free(has);
	(void)sl_user_free(who);
}

static void start(void)
{
	struct sl_error err = {0};

	if (sd_event_new(&owner.loop) < 0 ||
		sl_inside_door_new(&owner, &owner.inside) < 0 ||
		sl_page_snapshot_new(owner.inside, &page.look) < 0)
		abort();
	sl_inside_door_end(owner.inside);
	sl_page_snapshot_end(page.look);
	page.door = owner.inside;
	page.rules =
		(struct sl_page_rules){.is_loopback = true, .names = "", .machine = ""};
	page.tokens = sl_page_tokens_new();
	page.reads = sl_page_rate_new(1000000, 1000000);
	page.changes = sl_page_rate_new(1000000, 1000000);
	page.failures = sl_page_rate_new(1, 1);
	page.share = sl_page_share_new();
	page.http.site = &sl_page_site;
	sl_list_init(&page.http.connections);
	(void)pthread_mutex_init(&page.http.mutex, NULL);
	page.http.listener.fd = make_listener();
	if (sl_page_server_start(&page, "", "", &err) < 0)
		abort();
}

/* --- inputs ---------------------------------------------------------------------------------- */

/* Members that handlers know, with values of every kind, picked by the input. */
static size_t make_body(const uint8_t *data, size_t size, char *out, size_t room)
{
	static const char *const keys[] = {"request", "limit", "priority", "command",
		"env", "name", "project", "resource", "gpus", "gang", "min", "on_reclaim",
		"dir", "grace_ms", "warm_after_ms", "longest_wait_ms", "preempt_delay_ms",
		"retries", "try", "swap", "preemptible"};
	static const char *const values[] = {"\"4GiB\"", "0.25", "1", "-1", "null",
		"true", "[\"sh\",\"-c\",\"exit\"]", "[]", "[1]", "{}", "{\"A\":\"b\"}",
		"{\"A=\":\"b\"}", "{\"\":1}", "1e999", "18446744073709551615", "\"\"",
		"\"/tmp\"", "\"park\"", "\"\\u0000\"", "\"\\ud800\"",
		"\"<b>\\u001b[31m\"", "0.0000001", "[[[[1]]]]"};
	size_t used = (size_t)snprintf(out, room, "{");

	for (size_t i = 0; i + 1 < size && i < 2 * (size % 7) && used < room; i += 2)
		used += (size_t)snprintf(out + used, room - used, "%s\"%s\":%s",
			i ? "," : "", keys[data[i] % SL_ARRAY_LEN(keys)],
			values[data[i + 1] % SL_ARRAY_LEN(values)]);
	if (used < room)
		used += (size_t)snprintf(out + used, room - used, "}");
	return sl_min_u64(used, room - 1);
}

struct sent {
	char text[HEAD_MAX + 4096];
	size_t size;
	bool may_change; /* it brings a token */
};

static void make_request(const uint8_t *data, size_t size, struct sent *sent)
{
	const struct sl_page_route *route = NULL;
	char path[160], body[2048];
	size_t length = 0, routes = 0;
	uint8_t how = data[1];
	const char *star;

	while (sl_page_route_at(routes))
		routes++;
	route = sl_page_route_at(data[0] % routes);
	star = strchr(route->path, '*');
	(void)snprintf(path, sizeof(path), "%.*s%s%s",
		(int)(star ? star - route->path : (long)strlen(route->path)), route->path,
		star ? (how & 1 ? "1" : "small") : "", star ? star + 1 : "");
	if (how & 8 || strcmp(route->method, "POST") != 0)
		length = 0;
	else if (how & 2)
		length = make_body(data + 2, size - 2, body, sizeof(body));
	else
		memcpy(body, data + 2, length = sl_min_u64(size - 2, sizeof(body)));
	sent->may_change = how & 4;
	sent->size = (size_t)snprintf(sent->text, HEAD_MAX,
		"%s %s%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
		"Content-Type: %s\r\nContent-Length: %zu\r\n%s%s%s\r\n",
		how & 8 ? "GET" : route->method, path,
		how & 16 ? "?last=3&name=%00x&from_ms=9&task=1" : "",
		(how & 0x30) == 0x30 ? "text/plain" : "application/json", length,
		sent->may_change ? "Authorization: Bearer " : "",
		sent->may_change ? token : "", sent->may_change ? "\r\n" : "");
	memcpy(sent->text + sent->size, body, length);
	sent->size += length;
}

/* --- answers --------------------------------------------------------------------------------- */

static size_t exchange(const struct sent *sent, char *answer)
{
	int fd = dial();
	size_t used = 0, done = 0;

	while (done < sent->size) {
		ssize_t n = send(fd, sent->text + done, sent->size - done, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	(void)shutdown(fd, SHUT_WR);
	while (used < ANSWER_MAX - 1) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&ready, 1, PATIENCE_MS) <= 0)
			abort();
		n = recv(fd, answer + used, ANSWER_MAX - 1 - used, 0);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	(void)close(fd);
	answer[used] = '\0';
	return used;
}

static void check_answer(const struct sent *sent, const char *answer)
{
	static const char start_of[] = "HTTP/1.1 ";
	int status;

	if (!answer[0])
		return;
	if (strncmp(answer, start_of, strlen(start_of)) != 0)
		abort();
	status = atoi(answer + strlen(start_of));
	if (status < 200 || status > 599)
		abort();
	/* The library's own have neither body of ours nor anything to protect. */
	if (status != 400 && status != 431 && status != 414 && status != 505 &&
		status != 501 && !strstr(answer, "default-src 'none'"))
		abort();
	if (strncmp(sent->text, "POST", 4) == 0 && status < 300)
		abort();
	if (strncmp(sent->text, "POST", 4) == 0 && !sent->may_change && status == 503)
		abort();
}

static void through_a_socket(const uint8_t *data, size_t size)
{
	static char answer[ANSWER_MAX];
	struct sent sent = {0};

	if (data[0] & 128) {
		sent.size = sl_min_u64(size - 1, sizeof(sent.text));
		memcpy(sent.text, data + 1, sent.size);
	} else {
		make_request(data, size, &sent);
	}
	(void)exchange(&sent, answer);
	check_answer(&sent, answer);
}

/* --- the pure parts -------------------------------------------------------------------------- */

/* Texts out of the input, one after another, as headers. */
static const char *next_text(
	const uint8_t **data, const uint8_t *end, char *room, size_t size)
{
	size_t length = 0;

	if (*data >= end || !(**data % 4))
		return NULL;
	for (; *data < end && **data != '\n' && length + 1 < size; (*data)++)
		room[length++] = (char)(**data ? **data : 'x');
	if (*data < end)
		(*data)++;
	room[length] = '\0';
	return room;
}

static void meet_the_guard(const uint8_t *data, size_t size)
{
	char text[5][256], argument[128], allowed[32];
	const uint8_t *at = data + 2, *end = data + size;
	struct sl_page_rules rules = {.is_socket = data[0] & 1,
		.is_loopback = data[0] & 2,
		.tls = data[0] & 4,
		.names = data[0] & 8 ? "a, b c" : "",
		.machine = data[0] & 16 ? "m" : ""};
	struct sl_page_headers headers = {.hosts = data[1] & 3,
		.changes = data[1] & 4,
		.has_body = data[1] & 8,
		.is_front = data[1] & 16};
	struct sl_error why = {0};
	unsigned int status;

	headers.host = next_text(&at, end, text[0], sizeof(text[0]));
	headers.origin = next_text(&at, end, text[1], sizeof(text[1]));
	headers.site = next_text(&at, end, text[2], sizeof(text[2]));
	headers.mode = next_text(&at, end, text[3], sizeof(text[3]));
	headers.type = next_text(&at, end, text[4], sizeof(text[4]));
	if (!headers.host)
		headers.hosts = 0;
	status = sl_page_guard(&rules, &headers, &why);
	if (!status != !why.text[0])
		abort();
	if (!status && headers.site && strcmp(headers.site, "cross-site") == 0 &&
		!headers.is_front)
		abort();
	if (!status && !rules.is_socket && headers.hosts != 1)
		abort();
	(void)sl_page_route_find(headers.mode ? headers.mode : "GET",
		headers.host ? headers.host : "/", argument, allowed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_started;

	if (size < 3)
		return 0;
	if (!is_started)
		start();
	is_started = true;
	meet_the_guard(data, size);
	if ((data[0] + data[size / 2] + data[size - 1]) % 16 == 0) {
		need_token();
		through_a_socket(data, size);
	}
	return 0;
}
