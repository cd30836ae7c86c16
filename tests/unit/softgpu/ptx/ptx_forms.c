/*
 * ptx_forms - every row of forms.def that computes a value, and random programs of them, against
 * the slow evaluator
 *
 * Each row is tried with every type and with each modifier that it may have, on edges and on random
 * bits. The seed of the random programs is printed, and may be given: SLUICE_TEST_SEED.
 */
#include "ptx.h"
#include "ptx_eval.h"

#include "softgpu/ptx/internal.h"

#include <time.h>

#define THREADS    160u
#define PER_KERNEL 24u
#define PROGRAMS   24u
#define STEPS      60u

struct try_of {
	const struct form *form;
	char text[96];
	struct ptx_case c;
};
static struct try_of *tries;
static unsigned try_count;

static uint64_t seed, state;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* What numbers of all widths trip over, in each half of the word. */
static uint64_t operand_of(void)
{
	static const uint64_t edges[] = {0, 1, 2, 31, 32, 33, 63, 64, 0x7f, 0x80, 0xff,
		0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
		0x7fffffffffffffff, 0x8000000000000000, ~0ull, 0x3c00, 0x3c01, 0xbc00,
		0x7c00, 0xfc00, 0x7e00, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x3f80, 0x7f80,
		0x3f800000, 0xbf800000, 0x3f800001, 0x7f800000, 0xff800000, 0x7fc00000,
		0x00000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0x4b000000, 0x3f000000,
		0x4f000000, 0xcf000000, 0x3ff0000000000000, 0xbff0000000000000,
		0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
		0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
		0x3ff8000000000000, 0x41e0000000000000, 0x43e0000000000000, 0x38003c00,
		0x3c003c013c02bc00};
	uint64_t x = draw();

	switch (x >> 60) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4: return edges[draw() % SL_ARRAY_LEN(edges)];
	case 5: return draw() % 70;
	case 6: return 0x3f000000 + draw() % 0x2000000;            /* singles about 1 */
	case 7: return 0x3fe0000000000000 + draw() % (1ull << 55); /* doubles about 1 */
	case 8: return 0x3800380038003800 + (draw() & 0x0fff0fff0fff0fff);
	case 9: return 0 - draw() % 70;
	default: return draw();
	}
}

/* Texts --------------------------------------------------------------------------------------- */

static const char *nth_word(const char *words, unsigned n, char *out)
{
	size_t length;

	for (; n && *words; n--) {
		words += strcspn(words, " ");
		words += *words == ' ';
	}
	length = strcspn(words, " ");
	snprintf(out, 24, "%.*s", (int)(length < 23 ? length : 23), words);
	return *out ? out : NULL;
}

static void add_try(
	const struct form *form, const char *type, const char *source, const char *mod)
{
	struct try_of *t = &tries[try_count++];
	char word[24];
	int n;

	*t = (struct try_of){.form = form};
	snprintf(t->c.op, sizeof(t->c.op), "%s", form->op);
	snprintf(t->c.mods, sizeof(t->c.mods), " %s %s ", form->required, mod);
	snprintf(t->c.type, sizeof(t->c.type), "%s", type);
	snprintf(t->c.source, sizeof(t->c.source), "%s", source);
	n = snprintf(t->text, sizeof(t->text), "%s", form->op);
	for (unsigned i = 0; nth_word(form->required, i, word); i++)
		n += snprintf(t->text + n, sizeof(t->text) - (size_t)n, ".%s", word);
	if (*mod)
		n += snprintf(t->text + n, sizeof(t->text) - (size_t)n, ".%s", mod);
	n += snprintf(t->text + n, sizeof(t->text) - (size_t)n, ".%s", type);
	if (*source)
		snprintf(t->text + n, sizeof(t->text) - (size_t)n, ".%s", source);
}

static void add_tries(const struct form *form)
{
	char type[24], source[24], mod[24];

	for (unsigned i = 0; nth_word(form->types, i, type); i++)
		for (unsigned k = 0; k == 0 || nth_word(form->sources, k, source); k++) {
			if (!nth_word(form->sources, k, source))
				*source = '\0';
			add_try(form, type, source, "");
			for (unsigned n = 0; nth_word(form->optional, n, mod); n++)
				if (strcmp(form->op, "set") != 0 || i == n % 3)
					add_try(form, type, source, mod);
		}
}

static const char *type_of(const struct try_of *t, char letter)
{
	static char wide[8];

	switch (letter) {
	case 'S': return t->c.source;
	case 'W':
		snprintf(wide, sizeof(wide), "%c%u", t->c.type[0],
			ptx_eval_bits(t->c.type) * 2);
		return wide;
	case 'p': return "pred";
	case 'u': return "u32";
	default: return t->c.type;
	}
}

/* A letter for the registers of that width. */
static char family(const char *type)
{
	unsigned bits = ptx_eval_bits(type);

	return bits == 1 ? 'p' : bits <= 16 ? 'h' : bits == 32 ? 'r' : 'd';
}

static unsigned operands_of(const struct try_of *t)
{
	return (unsigned)strlen(t->form->signature) - 1;
}

static bool joins(const struct try_of *t)
{
	return strstr(t->c.mods, " and ") || strstr(t->c.mods, " or ") ||
	       strstr(t->c.mods, " xor ");
}

/* op dest, operands: registers LETTER and number. */
static void write_op(
	FILE *out, const struct try_of *t, unsigned dest, const unsigned from[4])
{
	fprintf(out, "\t%s %%%c%u", t->text, family(type_of(t, t->form->signature[0])),
		dest);
	for (unsigned k = 0; k < operands_of(t); k++)
		fprintf(out, ", %%%c%u", family(type_of(t, t->form->signature[k + 1])),
			from[k]);
	if (joins(t) && (!strcmp(t->c.op, "setp") || !strcmp(t->c.op, "set")))
		fprintf(out, ", %%p%u", from[2]);
	fprintf(out, ";\n");
}

static void write_start(FILE *out, const char *name, unsigned number)
{
	fprintf(out,
		".visible .entry %s%u(.param .u64 in, .param .u64 out)\n{\n"
		"\t.reg .pred %%p<20>;\n\t.reg .b16 %%h<20>;\n\t.reg .b32 %%r<20>;\n"
		"\t.reg .b64 %%d<20>, %%at<9>;\n\tld.param.u64 %%at0, "
		"[in];\n\tld.param.u64 %%at1, [out];\n"
		"\tmov.u32 %%r19, %%tid.x;\n\tmul.wide.u32 %%at2, %%r19, 64;\n\tadd.u64 "
		"%%at0, %%at0, %%at2;\n",
		name, number);
}

static void write_load(FILE *out, unsigned reg)
{
	fprintf(out,
		"\tld.global.u64 %%d%u, [%%at0+%u];\n\tcvt.u32.u64 %%r%u, %%d%u;\n"
		"\tcvt.u16.u64 %%h%u, %%d%u;\n\tand.b64 %%at3, %%d%u, 1;\n\tsetp.ne.u64 "
		"%%p%u, %%at3, 0;\n",
		reg, reg * 8, reg, reg, reg, reg, reg, reg);
}

static void write_widened(FILE *out, char letter, unsigned reg)
{
	if (letter == 'p')
		fprintf(out, "\tselp.b64 %%at4, 1, 0, %%p%u;\n", reg);
	else if (letter == 'd')
		fprintf(out, "\tmov.b64 %%at4, %%d%u;\n", reg);
	else
		fprintf(out, "\tcvt.u64.u%u %%at4, %%%c%u;\n", letter == 'h' ? 16 : 32,
			letter, reg);
}

/* Forms --------------------------------------------------------------------------------------- */

static char *forms_text(unsigned first, unsigned count)
{
	static const unsigned from[4] = {0, 1, 2, 3};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, HEAD);
	for (unsigned i = first; i < first + count; i++) {
		unsigned place = i % PER_KERNEL;

		if (i == first || place == 0) {
			write_start(out, "forms", i / PER_KERNEL);
			for (unsigned k = 0; k < 5; k++)
				write_load(out, k);
			fprintf(out,
				"\tmul.wide.u32 %%at2, %%r19, %u;\n\tadd.u64 %%at1, "
				"%%at1, %%at2;\n",
				PER_KERNEL * 16);
		}
		fprintf(out, "\tadd.cc.u32 %%r9, %%r4, 0xffffffff;\n");
		write_op(out, &tries[i], 8, from);
		fprintf(out, "\taddc.u32 %%r9, 0, 0;\n\tcvt.u64.u32 %%at5, %%r9;\n");
		write_widened(
			out, family(type_of(&tries[i], tries[i].form->signature[0])), 8);
		fprintf(out, "\tst.global.v2.u64 [%%at1+%u], {%%at4, %%at5};\n",
			place * 16);
		if (i + 1 == first + count || place + 1 == PER_KERNEL)
			fprintf(out, "\tret;\n}\n");
	}
	fclose(out);
	return text;
}

static uint64_t cut_to(uint64_t v, const char *type)
{
	unsigned bits = ptx_eval_bits(type);

	return bits < 64 ? v & ((1ull << bits) - 1) : v;
}

static unsigned check_try(const struct try_of *t, const uint64_t *in, const uint64_t *got)
{
	const char *type = type_of(t, t->form->signature[0]);
	struct ptx_case c = t->c;
	bool has_carry = strstr(c.mods, " cc ") != NULL;

	memcpy(c.in, in, sizeof(c.in));
	for (unsigned k = 0; k < operands_of(t); k++)
		c.in[k] = cut_to(in[k], type_of(t, t->form->signature[k + 1]));
	c.carry = (in[4] & 0xffffffff) != 0;
	if (!ptx_eval(&c)) {
		print_error("%s: the evaluator does not know it\n", t->text);
		return 1;
	}
	if (ptx_eval_same(&c, type, cut_to(got[0], type), cut_to(c.out, type)) &&
		(!has_carry || got[1] == c.carry))
		return 0;
	print_error(
		"%s of %llx, %llx, %llx, %llx: %llx carry %llu, wanted %llx carry %u\n",
		t->text, (unsigned long long)c.in[0], (unsigned long long)c.in[1],
		(unsigned long long)c.in[2], (unsigned long long)c.in[3],
		(unsigned long long)got[0], (unsigned long long)got[1],
		(unsigned long long)c.out, c.carry);
	return 1;
}

static unsigned run_forms(unsigned first, unsigned count)
{
	char *text = forms_text(first, count), name[32];
	const struct sl_host_module *m = ptx_load(text);
	uint64_t *in = calloc(THREADS, 64), *out = malloc(THREADS * PER_KERNEL * 16ull);
	void *params[] = {&in, &out};
	unsigned bad_ones = 0;

	for (unsigned i = 0; i < THREADS * 8; i++)
		in[i] = operand_of();
	for (unsigned i = 4; i < THREADS * 8; i += 16)
		in[i] = 0;
	for (unsigned i = first; i < first + count; i++) {
		unsigned failures = 0;

		if (i == first || i % PER_KERNEL == 0) {
			snprintf(name, sizeof(name), "forms%u", i / PER_KERNEL);
			ptx_run(ptx_kernel(m, name), 1, THREADS, 1, 0, params);
		}
		for (unsigned k = 0; k < THREADS && !failures; k++)
			failures += check_try(&tries[i], in + k * 8,
				out + ((uint64_t)k * PER_KERNEL + i % PER_KERNEL) * 2);
		bad_ones += failures;
	}
	free(text);
	free(in);
	free(out);
	return bad_ones;
}

static void test_forms(void **unused)
{
	const unsigned chunk = PER_KERNEL * 20;
	unsigned bad_ones = 0;

	(void)unused;
	for (unsigned i = 0; i < try_count; i += chunk)
		bad_ones += run_forms(i, try_count - i < chunk ? try_count - i : chunk);
	print_message("%u forms tried\n", try_count);
	assert_int_equal(bad_ones, 0);
}

/* Random programs ----------------------------------------------------------------------------- */

struct step {
	const struct try_of *t;
	unsigned dest, from[4];
};

/* Results that are floats are left out: the bits of a NaN are not promised. */
static bool exact(const struct try_of *t)
{
	const char *type = type_of(t, t->form->signature[0]);
	struct ptx_case c = t->c;

	return !strchr(type, 'f') && family(type) != 'h' && !strstr(t->c.mods, " cc ") &&
	       t->c.op[strlen(t->c.op) - 1] != 'c' && ptx_eval(&c);
}

static void draw_program(struct step *program)
{
	for (unsigned i = 0; i < STEPS; i++) {
		do
			program[i].t = &tries[draw() % try_count];
		while (!exact(program[i].t));
		program[i].dest = (unsigned)(draw() % 8);
		for (unsigned k = 0; k < 4; k++)
			program[i].from[k] = (unsigned)(draw() % 8);
	}
}

static void write_program(FILE *out, unsigned number, const struct step *program)
{
	write_start(out, "program", number);
	for (unsigned k = 0; k < 8; k++)
		write_load(out, k);
	fprintf(out, "\tadd.u64 %%at1, %%at1, %%at2;\n");
	for (unsigned i = 0; i < STEPS; i++)
		write_op(out, program[i].t, program[i].dest, program[i].from);
	for (unsigned k = 0; k < 8; k++) {
		write_widened(out, 'r', k);
		fprintf(out, "\txor.b64 %%at4, %%at4, %%d%u;\n", k);
		fprintf(out, "\tst.global.u64 [%%at1+%u], %%at4;\n", k * 8);
	}
	fprintf(out, "\tret;\n}\n");
}

struct machine {
	uint64_t p[8], h[8], r[8], d[8];
};

static uint64_t *reg_of(struct machine *m, char letter, unsigned n)
{
	return letter == 'p'   ? &m->p[n]
	       : letter == 'h' ? &m->h[n]
	       : letter == 'r' ? &m->r[n]
			       : &m->d[n];
}

static void step_machine(struct machine *m, const struct step *s)
{
	struct ptx_case c = s->t->c;
	const char *type;

	for (unsigned k = 0; k < operands_of(s->t); k++) {
		type = type_of(s->t, s->t->form->signature[k + 1]);
		c.in[k] = cut_to(*reg_of(m, family(type), s->from[k]), type);
	}
	if (joins(s->t))
		c.in[2] = m->p[s->from[2]];
	ptx_eval(&c);
	type = type_of(s->t, s->t->form->signature[0]);
	*reg_of(m, family(type), s->dest) = cut_to(c.out, type);
}

static void check_program(
	const struct sl_host_module *m, unsigned number, const struct step *program)
{
	static uint64_t in[THREADS * 8], out[THREADS * 8];
	uint64_t *in_at = in, *out_at = out;
	void *params[] = {&in_at, &out_at};
	char name[32];

	for (unsigned i = 0; i < THREADS * 8; i++)
		in[i] = operand_of();
	snprintf(name, sizeof(name), "program%u", number);
	ptx_run(ptx_kernel(m, name), 1, THREADS, 1, 0, params);
	for (unsigned i = 0; i < THREADS; i++) {
		struct machine state_of = {0};

		for (unsigned k = 0; k < 8; k++) {
			state_of.d[k] = in[i * 8 + k];
			state_of.r[k] = in[i * 8 + k] & 0xffffffff;
			state_of.h[k] = in[i * 8 + k] & 0xffff;
			state_of.p[k] = in[i * 8 + k] & 1;
		}
		for (unsigned k = 0; k < STEPS; k++)
			step_machine(&state_of, &program[k]);
		for (unsigned k = 0; k < 8; k++)
			assert_row_u64(
				name, out[i * 8 + k], state_of.r[k] ^ state_of.d[k]);
	}
}

static void test_programs(void **unused)
{
	static struct step program[PROGRAMS][STEPS];
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)unused;
	fprintf(out, HEAD);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		draw_program(program[i]);
		write_program(out, i, program[i]);
	}
	fclose(out);
	const struct sl_host_module *m = ptx_load(text);
	for (unsigned i = 0; i < PROGRAMS; i++)
		check_program(m, i, program[i]);
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_programs),
	};
	const char *given = getenv("SLUICE_TEST_SEED");

	setenv("XDG_CACHE_HOME", "/proc/nowhere", 1); /* nothing is kept of these */
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	state = seed * 2654435761u + 88172645463325252ull;
	print_message("seed %llu\n", (unsigned long long)seed);
	tries = calloc(20000, sizeof(*tries));
	for (size_t i = 0; ptx_form_at(i); i++)
		if (ptx_form_at(i)->kind == FORM_VALUE &&
			strcmp(ptx_form_at(i)->op, "activemask") != 0 &&
			strcmp(ptx_form_at(i)->op, "cvta") != 0)
			add_tries(ptx_form_at(i));
	int failures = cmocka_run_group_tests(tests, NULL, NULL);
	free(tries);
	return failures;
}
