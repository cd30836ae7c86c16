/*
 * wait - what the script around the parts needs: is the daemon there, and which GPU has it
 */
#include "bench.h"

#include "ask.h"

#include <unistd.h>

#include "base/paths.h"

#define LIMIT_NS (10 * SL_S)

int bench_part_wait(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	sl_ns give_up = sl_clock_now() + LIMIT_NS;
	char path[SL_SOCKET_PATH_MAX];
	struct sl_error err = {{0}};
	struct sl_msg_status_row status;
	int fd;

	bench_require(
		sl_paths_socket(path, sizeof(path), &err) == SL_PATHS_OK, "%s", err.text);
	while ((fd = sl_wire_connect(path, &err)) < 0) {
		bench_require(sl_clock_now() < give_up, "%s", err.text);
		sl_clock_sleep(10 * SL_MS);
	}
	(void)close(fd);
	/* Nothing is granted while it looks for the processes of a daemon before. */
	do {
		fd = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
		bench_status(fd, &status);
		(void)close(fd);
		bench_require(sl_clock_now() < give_up, "the daemon is still recovering");
		sl_clock_sleep(10 * SL_MS);
	} while (status.recovering);
	return 0;
}

int bench_part_gpu(int argc, char **argv)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	struct sl_msg_gpu_row gpu;
	int fd = bench_dial(SL_ROLE_CONTROL, no_token, NULL);

	bench_gpu(fd, &gpu);
	(void)close(fd);
	(void)puts(gpu.name);
	return 0;
}
