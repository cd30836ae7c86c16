/*
 * http-client - asks as scripts need it, and as no good client would
 *
 *	http-client ADDRESS send: standard input to the server, its answer to standard output.
 *	http-client ADDRESS get TARGET: a GET in HTTP/1.0, the body to standard output.
 *	http-client ADDRESS watch TARGET MS [HEADER]: a GET in HTTP/1.1, all within that time.
 *	http-client ADDRESS trickle N MS [TARGET]: N connections that send a byte at a time.
 *	http-client ADDRESS idle N MS: N connections that send nothing.
 *	http-client ADDRESS deaf N MS [TARGET]: N connections that ask and never read.
 *	http-client ADDRESS listen MS: occupies the address for that time, so nothing else can.
 *
 * Without TARGET it is /metrics. ADDRESS is HOST:PORT (IPv4) or the path of a socket. The commands
 * with N end after MS, or as soon as the server has ended all their connections, and print how many
 * it has ended. Exit status: 0; 2 if nothing listens; 3 if no end came within 15 s; get: 1 if the
 * answer is not 200.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS      15000
#define MANY         256
#define ANSWER_BYTES (32u << 20)

static long long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* A socket that is connected to the address, or that listens there; -1 if that cannot be. */
static int open_at(const char *address,
	int (*how)(int fd, const struct sockaddr *to, socklen_t size))
{
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct sockaddr_in host = {.sin_family = AF_INET};
	const char *colon = strrchr(address, ':');
	bool is_path = address[0] == '/';
	int fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char name[64] = "";
	int on = 1;

	/* Connections that ended a moment ago do not prevent listening. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (is_path) {
		(void)snprintf(path.sun_path, sizeof(path.sun_path), "%s", address);
		if (how(fd, (struct sockaddr *)&path, sizeof(path)) == 0)
			return fd;
	} else if (colon && colon - address < (long)sizeof(name)) {
		memcpy(name, address, (size_t)(colon - address));
		host.sin_port = htons((unsigned short)atoi(colon + 1));
		if (inet_pton(AF_INET, name, &host.sin_addr) == 1 &&
			how(fd, (struct sockaddr *)&host, sizeof(host)) == 0)
			return fd;
	}
	(void)close(fd);
	return -1;
}

static int dial(const char *address)
{
	return open_at(address, connect);
}

static int do_listen(const char *address, int ms)
{
	int fd = open_at(address, bind);

	if (fd < 0 || listen(fd, 1) < 0)
		return 2;
	(void)puts("listening");
	(void)fflush(stdout);
	(void)usleep((useconds_t)ms * 1000);
	return 0;
}

/* Sends all that the server takes; it may hang up before the end. */
static void send_all(int fd, const char *data, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		data += n;
		bytes -= (size_t)n;
	}
}

/* Reads until the server closes; the bytes, or -1 after 15 s. A reset is an end, too. */
static long read_all(int fd, char *buf, size_t size)
{
	long long end = now_ms() + WAIT_MS;
	size_t used = 0;

	while (used < size) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (now_ms() > end || poll(&ready, 1, (int)(end - now_ms() + 1)) <= 0)
			return -1;
		n = recv(fd, buf + used, size - used, 0);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	return (long)used;
}

static int do_send(const char *address)
{
	static char in[ANSWER_BYTES], out[ANSWER_BYTES];
	int fd = dial(address);
	long got;

	if (fd < 0)
		return 2;
	send_all(fd, in, fread(in, 1, ANSWER_BYTES, stdin));
	(void)shutdown(fd, SHUT_WR);
	got = read_all(fd, out, ANSWER_BYTES);
	if (got < 0)
		return 3;
	(void)fwrite(out, 1, (size_t)got, stdout);
	return 0;
}

static int do_get(const char *address, const char *target)
{
	static char out[ANSWER_BYTES + 1];
	char request[512], *body;
	int fd = dial(address);
	long got;

	if (fd < 0)
		return 2;
	(void)snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", target);
	send_all(fd, request, strlen(request));
	got = read_all(fd, out, ANSWER_BYTES);
	if (got < 0)
		return 3;
	body = strstr(out, "\r\n\r\n");
	if (strncmp(out, "HTTP/1.", 7) != 0 || strncmp(out + 8, " 200 ", 5) != 0 || !body)
		return 1;
	body += 4;
	(void)fwrite(body, 1, (size_t)(out + got - body), stdout);
	return 0;
}

static bool is_ended(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLRDHUP};

	return poll(&ready, 1, 0) > 0;
}

static int do_watch(const char *address, const char *target, int ms, const char *header)
{
	long long end = now_ms() + ms;
	char request[512], piece[65536];
	int fd = dial(address);

	if (fd < 0)
		return 2;
	(void)snprintf(request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n", target, header,
		header[0] ? "\r\n" : "");
	send_all(fd, request, strlen(request));
	while (now_ms() < end) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&ready, 1, (int)(end - now_ms() + 1)) <= 0)
			break;
		n = recv(fd, piece, sizeof(piece), 0);
		if (n <= 0)
			break;
		(void)fwrite(piece, 1, (size_t)n, stdout);
		(void)fflush(stdout);
	}
	return 0;
}

static int do_many(
	const char *address, const char *how, int count, int ms, const char *target)
{
	long long end = now_ms() + ms;
	int fds[MANY], ended = 0;
	char ask[512];

	(void)snprintf(
		ask, sizeof(ask), "GET %s HTTP/1.1\r\nHost: localhost\r\n", target);

	for (int i = 0; i < count; i++) {
		fds[i] = dial(address);
		if (fds[i] < 0)
			return 2;
		if (strcmp(how, "idle") != 0)
			send_all(fds[i], ask, strlen(ask));
		if (strcmp(how, "deaf") == 0)
			send_all(fds[i], "\r\n", 2);
	}
	while (ended < count && now_ms() < end) {
		(void)usleep(100000);
		for (int i = 0; strcmp(how, "trickle") == 0 && i < count; i++)
			(void)send(fds[i], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		ended = 0;
		for (int i = 0; i < count; i++)
			ended += is_ended(fds[i]);
	}
	(void)printf("%d\n", ended);
	return 0;
}

int main(int argc, char **argv)
{
	int count;

	if (argc == 3 && strcmp(argv[2], "send") == 0)
		return do_send(argv[1]);
	if (argc == 4 && strcmp(argv[2], "get") == 0)
		return do_get(argv[1], argv[3]);
	if (argc == 4 && strcmp(argv[2], "listen") == 0)
		return do_listen(argv[1], atoi(argv[3]));
	if ((argc == 5 || argc == 6) && strcmp(argv[2], "watch") == 0)
		return do_watch(
			argv[1], argv[3], atoi(argv[4]), argc == 6 ? argv[5] : "");
	if (argc != 5 && argc != 6)
		return 64;
	count = atoi(argv[3]);
	if (count < 1 || count > MANY)
		return 64;
	return do_many(
		argv[1], argv[2], count, atoi(argv[4]), argc == 6 ? argv[5] : "/metrics");
}
