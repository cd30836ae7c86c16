/*
 * A workload's cells in a bar are what it holds (its letter), what the driver took for it (the
 * small letter), and the unused part of its request (-). So every request ends at one cell of the
 * bar, and a tick below marks that cell; letters right of the tick are burst.
 *
 * Requested memory may be lent to others. Then the free memory is less than the sum of unused
 * requests, and only the free memory is drawn as unused.
 *
 * Evicted memory is not on the GPU, and so not in its bar. Memory that is coming back has its space
 * already and counts as granted.
 */
#include "cli/top/top.h"

#include <ctype.h>

__extension__ typedef unsigned __int128 wide;

/* Takes a cell from one of the widest parts, for a part above 0 that has none. */
static bool take_one(unsigned int *cells, size_t count, size_t to)
{
	size_t widest = 0;

	for (size_t i = 1; i < count; i++)
		if (cells[i] > cells[widest])
			widest = i;
	if (cells[widest] < 2)
		return false;
	cells[widest]--;
	cells[to]++;
	return true;
}

void sl_top_spread(
	const uint64_t *bytes, size_t count, unsigned int width, unsigned int *cells)
{
	unsigned int used = 0;
	wide total = 0;

	for (size_t i = 0; i < count; i++)
		total += bytes[i];
	for (size_t i = 0; i < count; i++) {
		cells[i] = total ? (unsigned int)((wide)bytes[i] * width / total) : 0;
		used += cells[i];
	}
	/* Largest remainder first: fewer cells are left than there are parts. */
	while (total && used < width) {
		wide best_left = 0;
		size_t best = count;

		for (size_t i = 0; i < count; i++) {
			wide exact = (wide)bytes[i] * width;
			wide given = (wide)cells[i] * total;

			if (exact > given && exact - given > best_left) {
				best_left = exact - given;
				best = i;
			}
		}
		if (best == count)
			break;
		cells[best]++;
		used++;
	}
	for (size_t i = 0; i < count; i++)
		if (bytes[i] && !cells[i] && !take_one(cells, count, i))
			break;
}

/* Saturates, since the lists are read moments apart. */
static uint64_t resident(const struct sl_top_line *line)
{
	uint64_t evicted = line->use->evicted_bytes, backing = line->use->backing_bytes;

	return backing > evicted ? backing - evicted : 0;
}

static uint64_t used_by(const struct sl_top_line *line)
{
	return resident(line) + line->use->hidden_bytes;
}

/* A parked workload has given its request up until it is back. */
static uint64_t request_of(const struct sl_top_line *line)
{
	return sl_wire_gave_up_request(line->use->residency) ? 0
							     : line->use->request_bytes;
}

static uint64_t unused_request(const struct sl_top_line *line)
{
	uint64_t used = used_by(line), request = request_of(line);

	used += line->use->returning_bytes;
	return request > used ? request - used : 0;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The part of unused requests that is free, in millionths. */
static uint64_t promised_ppm(
	const struct sl_msg_gpu_row *gpu, const struct sl_top_line *lines, size_t count)
{
	wide unused = 0;

	for (size_t i = 0; i < count; i++)
		if (lines[i].use->gpu == gpu->gpu)
			unused += unused_request(&lines[i]);
	return unused > gpu->free_bytes
		       ? (uint64_t)((wide)gpu->free_bytes * 1000000 / unused)
		       : 1000000;
}

static void add(struct sl_top_piece *pieces, size_t *n, uint32_t glyph, uint8_t style,
	uint64_t bytes)
{
	pieces[(*n)++] =
		(struct sl_top_piece){.glyph = glyph, .style = style, .bytes = bytes};
}

static uint8_t style_of(char letter)
{
	return letter == SL_TOP_NO_LETTER
		       ? SL_STYLE_PLAIN
		       : (uint8_t)(SL_STYLE_WORKLOAD +
				   (letter - 'A') % (SL_STYLES - SL_STYLE_WORKLOAD));
}

/* Finds the end of the request within the three pieces of a workload, whose cells are set. */
static void set_tick(struct sl_top_piece *pieces, const struct sl_top_line *line)
{
	uint64_t used = used_by(line), request = request_of(line);
	unsigned int own = pieces[0].cells + pieces[1].cells, tick;

	if (!request)
		return;
	tick = own + pieces[2].cells;
	if (request < used)
		tick = (unsigned int)((wide)request * own / used);
	for (size_t i = 0; i < 3 && tick; i++) {
		if (tick <= pieces[i].cells) {
			pieces[i].tick = tick;
			return;
		}
		tick -= pieces[i].cells;
	}
}

size_t sl_top_bar(const struct sl_msg_gpu_row *gpu, const struct sl_top_line *lines,
	size_t count, unsigned int width, bool ascii, struct sl_top_piece *pieces)
{
	uint64_t ppm = promised_ppm(gpu, lines, count), promised = 0, returning = 0;
	uint64_t bytes[SL_TOP_PIECES_MAX] = {0};
	unsigned int cells[SL_TOP_PIECES_MAX];
	size_t n = 0, own;

	/* A bar has fewer cells than this; further workloads are not drawn. */
	for (size_t i = 0; i < count && n + 9 <= SL_ARRAY_LEN(bytes); i++) {
		const struct sl_msg_use_row *use = lines[i].use;
		uint8_t style = style_of(lines[i].letter);
		uint64_t unused;

		if (use->gpu != gpu->gpu)
			continue;
		unused = (uint64_t)((wide)unused_request(&lines[i]) * ppm / 1000000);
		promised += unused;
		add(pieces, &n, (uint32_t)lines[i].letter, style, resident(&lines[i]));
		returning += use->returning_bytes;
		add(pieces, &n, (uint32_t)tolower(lines[i].letter), style,
			use->hidden_bytes);
		add(pieces, &n, '-', style, unused);
	}
	own = n;
	add(pieces, &n, '+', SL_STYLE_PLAIN, gpu->granted_bytes + returning);
	add(pieces, &n, '~', SL_STYLE_WARN, gpu->dying_bytes);
	add(pieces, &n, ascii ? '.' : 0xb7, SL_STYLE_DIM,
		gpu->free_bytes - min(gpu->free_bytes, promised));
	add(pieces, &n, '?', SL_STYLE_BAD, gpu->unmanaged_bytes);
	add(pieces, &n, '#', SL_STYLE_DIM, gpu->reserve_bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = pieces[i].bytes;
	sl_top_spread(bytes, n, width, cells);
	for (size_t i = 0; i < n; i++)
		pieces[i].cells = cells[i];
	for (size_t i = 0, at = 0; i < count && at < own; i++)
		if (lines[i].use->gpu == gpu->gpu) {
			set_tick(&pieces[at], &lines[i]);
			at += 3;
		}
	return n;
}
