/*
 * sequence - steps in memory and as text
 *
 * A file is for people first: one line per step, `worker.lane operation name=value ... dice=`; the
 * names before the equals signs are for the reader alone.
 */
#include "storm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct storm_op_row storm_op_rows[STORM_OPS];
static const char *const specs[] = {
#define SL_STORM_OP(name, weight, flags, spec) spec,
#include "ops.def"
#undef SL_STORM_OP
};
const char *const storm_kind_names[STORM_KINDS] = {
#define SL_STORM_KIND(letter, id, name, slots) name,
#include "kinds.def"
#undef SL_STORM_KIND
};
const unsigned storm_kind_slots[STORM_KINDS] = {
#define SL_STORM_KIND(letter, id, name, slots) slots,
#include "kinds.def"
#undef SL_STORM_KIND
};
static const char letters[] = {
#define SL_STORM_KIND(letter, id, name, slots) letter,
#include "kinds.def"
#undef SL_STORM_KIND
};
static const char *const shapes[] = {"solo", "crew", "linked"};

static void read_spec(struct storm_op_row *row, const char *spec)
{
	bool dies = false;

	for (; *spec; spec++) {
		struct storm_arg *arg = &row->arg[row->args];
		char small = (char)(*spec | 0x20);
		const char *kind;

		if (*spec == '-') {
			dies = true;
			continue;
		}
		kind = memchr(letters, small, sizeof(letters));
		arg->what = kind ? 's' : *spec;
		if (kind) {
			arg->kind = (enum storm_kind)(kind - letters);
			arg->is_new = *spec != small;
		}
		arg->dies = dies;
		dies = false;
		row->args++;
	}
}

void storm_ops_init(void)
{
	static const struct {
		const char *name;
		unsigned weight, flags;
	} rows[] = {
#define SL_STORM_OP(name, weight, flags, spec) {#name, weight, flags},
#include "ops.def"
#undef SL_STORM_OP
	};

	for (unsigned i = 0; i < STORM_OPS; i++) {
		storm_op_rows[i] = (struct storm_op_row){.name = rows[i].name,
			.weight = rows[i].weight,
			.flags = rows[i].flags};
		read_spec(&storm_op_rows[i], specs[i]);
	}
}

void storm_add(struct storm_sequence *q, const struct storm_step *s)
{
	if (q->count == q->room) {
		q->room = q->room ? 2 * q->room : 1024;
		q->step = realloc(q->step, q->room * sizeof(*q->step));
		if (!q->step) {
			fputs("storm: out of memory\n", stderr);
			exit(2);
		}
	}
	q->step[q->count++] = *s;
}

void storm_free(struct storm_sequence *q)
{
	free(q->step);
	memset(q, 0, sizeof(*q));
}

void storm_number(struct storm_sequence *q)
{
	uint32_t ticket = 0;

	for (size_t i = 0; i < q->count; i++)
		if (q->worker[q->step[i].worker].shape == STORM_SHAPE_LINKED)
			q->step[i].ticket = ticket++;
}

void storm_print_step(FILE *out, const struct storm_step *s)
{
	const struct storm_op_row *row = &storm_op_rows[s->op];

	fprintf(out, "%u.%u %s", s->worker, s->lane, row->name);
	for (unsigned i = 0; i < row->args; i++)
		fprintf(out, " %s=%" PRIu32,
			row->arg[i].what == 's'   ? storm_kind_names[row->arg[i].kind]
			: row->arg[i].what == '%' ? "bytes"
						  : "n",
			s->arg[i]);
	fprintf(out, " dice=%" PRIu32 "\n", s->dice);
}

bool storm_write(const struct storm_sequence *q, const char *path)
{
	FILE *out = fopen(path, "we");

	if (!out) {
		fprintf(stderr, "storm: cannot write %s\n", path);
		return false;
	}
	for (unsigned i = 0; i < q->workers; i++)
		fprintf(out, "worker %u %s %u\n", i, shapes[q->worker[i].shape],
			q->worker[i].lanes);
	for (size_t i = 0; i < q->count; i++)
		storm_print_step(out, &q->step[i]);
	return fclose(out) == 0;
}

static bool read_worker(struct storm_sequence *q, const char *line)
{
	unsigned number, lanes;
	char shape[16];

	if (sscanf(line, "worker %u %15s %u", &number, shape, &lanes) != 3 ||
		number != q->workers || number >= STORM_WORKERS_MAX || !lanes ||
		lanes > STORM_LANES_MAX)
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(shapes[i], shape)) {
			q->worker[q->workers++] =
				(struct storm_worker){(enum storm_shape)i, lanes};
			return true;
		}
	return false;
}

static bool read_values(struct storm_step *s, char *rest)
{
	const struct storm_op_row *row = &storm_op_rows[s->op];

	for (unsigned i = 0; i <= row->args; i++) {
		char *word = strsep(&rest, " \n"),
		     *value = word ? strchr(word, '=') : NULL;

		if (!value)
			return false;
		*(i < row->args ? &s->arg[i] : &s->dice) =
			(uint32_t)strtoul(value + 1, NULL, 10);
	}
	return true;
}

static bool read_step(struct storm_sequence *q, char *line)
{
	struct storm_step s = {.id = (uint32_t)q->count};
	unsigned worker, lane;
	int used = 0;
	char name[32];

	if (sscanf(line, "%u.%u %31s %n", &worker, &lane, name, &used) != 3 ||
		worker >= q->workers || lane >= q->worker[worker].lanes)
		return false;
	s.worker = (uint8_t)worker;
	s.lane = (uint8_t)lane;
	for (unsigned i = 0; i < STORM_OPS; i++)
		if (!strcmp(storm_op_rows[i].name, name)) {
			s.op = (uint16_t)i;
			if (!read_values(&s, line + used))
				return false;
			storm_add(q, &s);
			return true;
		}
	return false;
}

bool storm_read(struct storm_sequence *q, const char *path)
{
	FILE *in = fopen(path, "re");
	char line[512];
	unsigned number = 0;
	bool good = in;

	memset(q, 0, sizeof(*q));
	if (!in)
		fprintf(stderr, "storm: cannot open %s\n", path);
	while (good && fgets(line, sizeof(line), in)) {
		number++;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		good = !strncmp(line, "worker", 6) ? read_worker(q, line)
						   : read_step(q, line);
		if (!good)
			fprintf(stderr, "storm: %s, line %u is not a step: %s", path,
				number, line);
	}
	if (in)
		fclose(in);
	storm_number(q);
	return good;
}
