/*
 * text - see the header
 *
 * Room is reserved in steps as the text grows, because its length is not known before. A memory
 * file is sealed against growing and writing, but not against shrinking: so its memory can be taken
 * back even if its receiver keeps the file open.
 */
#include "daemon/history/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

#define STEP (256u << 10)

/* --- room --------------------------------------------------------------------------------- */

void sl_history_budget_init(struct sl_history_budget *room)
{
	*room = (struct sl_history_budget){0};
	(void)pthread_mutex_init(&room->mutex, NULL);
}

void sl_history_budget_fini(struct sl_history_budget *room)
{
	(void)pthread_mutex_destroy(&room->mutex);
}

/* Index of this key, or of the first unused entry. False: all are in use. */
static bool place_of(const struct sl_history_budget *room, uint64_t key, size_t *out)
{
	size_t empty = SL_HISTORY_ROOM_KEYS;

	for (size_t i = 0; i < SL_HISTORY_ROOM_KEYS; i++) {
		if (room->of[i].bytes && room->of[i].key == key) {
			*out = i;
			return true;
		}
		if (!room->of[i].bytes && empty == SL_HISTORY_ROOM_KEYS)
			empty = i;
	}
	*out = empty;
	return empty < SL_HISTORY_ROOM_KEYS;
}

static bool take(struct sl_history_text *text, size_t bytes)
{
	struct sl_history_budget *room = text->room;
	bool ok = false;
	size_t i;

	(void)pthread_mutex_lock(&room->mutex);
	if (room->taken + bytes <= SL_HISTORY_ROOM_ALL && place_of(room, text->key, &i) &&
		room->of[i].bytes + bytes <= SL_HISTORY_ROOM_KEY) {
		room->of[i].key = text->key;
		room->of[i].bytes += bytes;
		room->taken += bytes;
		text->taken += bytes;
		ok = true;
	}
	(void)pthread_mutex_unlock(&room->mutex);
	return ok;
}

static void give(struct sl_history_text *text, size_t bytes)
{
	struct sl_history_budget *room = text->room;
	size_t i;

	(void)pthread_mutex_lock(&room->mutex);
	if (place_of(room, text->key, &i) && room->of[i].bytes >= bytes) {
		room->of[i].bytes -= bytes;
		room->taken -= bytes;
		text->taken -= bytes;
	}
	(void)pthread_mutex_unlock(&room->mutex);
}

/* --- text --------------------------------------------------------------------------------- */

static ssize_t put(void *cookie, const char *buf, size_t count)
{
	struct sl_history_text *text = cookie;
	size_t size = text->size + count;
	int r;

	if (text->error)
		return 0;
	if (size > text->taken && !take(text, sl_max_u64(STEP, size - text->taken))) {
		text->error = EDQUOT;
		return 0;
	}
	r = sl_file_write_all(text->fd, buf, count);
	if (r < 0) {
		text->error = -r;
		return 0;
	}
	text->size = size;
	return (ssize_t)count;
}

struct sl_history_text *sl_history_text_new(
	struct sl_history_budget *room, uint64_t key, FILE **out)
{
	struct sl_history_text *text = calloc(1, sizeof(*text));

	*out = NULL;
	if (!text)
		return NULL;
	text->room = room;
	text->key = key;
	text->fd = memfd_create("sluice-history", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (text->fd >= 0)
		*out = fopencookie(text, "w", (cookie_io_functions_t){.write = put});
	if (!*out)
		return sl_history_text_free(text);
	(void)setvbuf(*out, NULL, _IOFBF, 64u << 10);
	return text;
}

bool sl_history_text_end(struct sl_history_text *text, FILE **out, struct sl_error *err)
{
	if (fclose(*out) != 0 && !text->error)
		text->error = EIO;
	*out = NULL;
	if (lseek(text->fd, 0, SEEK_SET) < 0 && !text->error)
		text->error = errno;
	if (!text->error && fcntl(text->fd, F_ADD_SEALS,
				    F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		text->error = errno;
	if (!text->error)
		return true;
	if (text->error == EDQUOT)
		sl_error_set(err,
			"answers of many megabytes about the history are being read "
			"already; ask for less (longer steps, a shorter time), or try "
			"again in a while");
	else
		sl_error_set(err, "no memory for the answer (%s); ask for less",
			strerror(text->error));
	return false;
}

struct sl_history_text *sl_history_text_free(struct sl_history_text *text)
{
	if (!text)
		return NULL;
	/* Other holders of the descriptor find it empty; its memory is free at once. */
	if (text->fd >= 0 && ftruncate(text->fd, 0) < 0)
		text->error = errno;
	sl_closep(&text->fd);
	if (text->taken)
		give(text, text->taken);
	free(text);
	return NULL;
}
