/*
 * main - sluice-softgpu: the server of a box, or a companion
 *
 * sluice-softgpu serve SOCKET KEEP_FD READY_FD KEY=VALUE...
 *	keys are those of SL_SOFTGPU_SETTINGS, faults and models; a byte on READY_FD reports
 *	that it serves.
 * sluice-softgpu companion DEVICE SLICE_US
 *	with the client's socket as descriptor 3.
 *
 * Started by box.c and by the server; not meant for people.
 */
#include "softgpu/server/companion.h"
#include "softgpu/server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct setting {
	const char *key;
	size_t offset;
	uint64_t preset, lowest, highest;
} settings[] = {
#define SETTING(field, key, preset, lowest, highest, help) \
	{key, offsetof(struct sl_softgpu_config, field), preset, lowest, highest},
	SL_SOFTGPU_SETTINGS(SETTING)
#undef SETTING
};

static uint64_t *field(struct sl_softgpu_config *c, const struct setting *s)
{
	return (uint64_t *)((char *)c + s->offset);
}

static int set(struct sl_softgpu_config *c, char *pair)
{
	char *value = strchr(pair, '='), *end;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(pair, "faults")) {
		c->faults = value;
		return 0;
	}
	if (!strcmp(pair, "models")) {
		c->models = value;
		return 0;
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(settings); i++) {
		if (strcmp(settings[i].key, pair))
			continue;
		errno = 0;
		*field(c, &settings[i]) = strtoull(value, &end, 10);
		return errno || *end || end == value ? -EINVAL : 0;
	}
	return -EINVAL;
}

static int serve(int argc, char **argv)
{
	struct sl_softgpu_config c = {0};

	if (argc < 4)
		return 2;
	for (size_t i = 0; i < SL_ARRAY_LEN(settings); i++)
		*field(&c, &settings[i]) = settings[i].preset;
	for (int i = 4; i < argc; i++)
		if (set(&c, argv[i]) < 0) {
			fprintf(stderr, "sluice-softgpu: bad setting '%s'\n", argv[i]);
			return 2;
		}
	return sl_softgpu_serve(&c, argv[1], atoi(argv[2]), atoi(argv[3]));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "serve"))
		return serve(argc - 1, argv + 1);
	if (argc == 4 && !strcmp(argv[1], "companion"))
		return sl_companion_serve(3, (uint32_t)strtoul(argv[2], NULL, 10),
			strtoull(argv[3], NULL, 10) * SL_US);
	fprintf(stderr, "sluice-softgpu is started by sluice softgpu\n");
	return 2;
}
