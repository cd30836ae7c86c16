/*
 * http - see the header
 */
#include "http.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file.h"

int bench_http_ask(const char *path, const char *target)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[256];
	int size = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", target);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	bench_require(
		fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0,
		"%s: nobody answers", path);
	bench_require(send(fd, request, (size_t)size, MSG_NOSIGNAL) == size,
		"%s: the request was not taken", path);
	return fd;
}

ssize_t bench_http_read(int fd, char *text)
{
	size_t used = 0;
	ssize_t got;

	while ((got = recv(fd, text + used, BENCH_HTTP_MAX - 1 - used, 0)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	return got < 0 ? got : (ssize_t)used;
}

sl_ns bench_cpu_of(uint32_t pid)
{
	char path[64], file[400];
	struct dirent *entry;
	sl_ns sum = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	bench_require(dir, "%s: gone", path);
	while ((entry = readdir(dir))) {
		sl_cleanup(sl_freep) char *text = NULL;
		size_t size;

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(
			file, sizeof(file), "%s/%s/schedstat", path, entry->d_name);
		if (sl_file_read(file, 4096, &text, &size) == 0)
			sum += strtoull(text, NULL, 10);
	}
	(void)closedir(dir);
	return sum;
}
