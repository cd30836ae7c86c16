/*
 * emit - a module as the C text of a host module
 *
 * Each kernel becomes one C function, with a structure of its registers. If its threads wait for
 * each other, the function returns where a thread waits and continues there at its next call. The
 * structure is copied out before the return and in again at that call. The text starts with
 * hostmodule.h and prelude.def.
 */
#include "softgpu/ptx/internal.h"

#include <stdlib.h>
#include <string.h>

extern const char sl_ptx_prelude[]; /* embed.S */

#define SHARED_MAX (48 * SL_KIB)

typedef unsigned long long ull;

/* The type as bits, as memory and moves use it. */
static enum ptx_type raw(enum ptx_type type)
{
	static const enum ptx_type bits[] = {
		[1] = T_b8, [2] = T_b16, [4] = T_b32, [8] = T_b64, [16] = T_b128};
	char kind = ptx_types[type].kind;

	return kind == 'f' || kind == 'l' ? bits[ptx_types[type].bytes] : type;
}

static bool width(
	struct module *m, const struct instruction *in, unsigned arg, uint32_t want)
{
	if (ptx_width(&in->arg[arg]) != want)
		bad(m, in->line, "'%.*s' wants a list of %u", NAME(in->op), want);
	return ptx_width(&in->arg[arg]) == want;
}

/* Moves and memory ---------------------------------------------------------------------------- */

/* From one to one, from a list into one register, or from one register into a list. */
void ptx_emit_mov(struct module *m, struct function *f, struct instruction *in)
{
	static const enum ptx_type of_bytes[] = {
		[1] = T_b8, [2] = T_b16, [4] = T_b32, [8] = T_b64};
	enum ptx_type type = raw(ptx_nth_type(in, 0)), part, from = type, to = type;
	const char *name = ptx_types[type].name;
	uint32_t n, bytes;
	char value[64];

	n = ptx_width(&in->arg[0]) > 1 ? ptx_width(&in->arg[0]) : ptx_width(&in->arg[1]);
	bytes = n ? ptx_types[type].bytes / n : 0;
	part = n < 2 ? type : bytes > 8 ? T_NONE : of_bytes[bytes];
	if (!n || n > 4 || part == T_NONE || (n > 1 && type == T_pred) ||
		(ptx_width(&in->arg[0]) > 1 && ptx_width(&in->arg[1]) > 1)) {
		bad(m, in->line, "'mov' cannot take %u registers for one of .%s", n,
			name);
		return;
	}
	*(ptx_width(&in->arg[0]) > 1 ? &to : &from) = part;
	say(m, "{ t_%s v = ", name);
	for (uint32_t i = 0; i < ptx_width(&in->arg[1]); i++) {
		say(m, "%s(t_%s)", i ? " | " : "", name);
		ptx_read(m, f, in, ptx_child(m, &in->arg[1], i), from);
		say(m, " << %u", i * bytes * 8);
	}
	say(m, "; ");
	for (uint32_t i = 0; i < ptx_width(&in->arg[0]); i++) {
		snprintf(value, sizeof(value), "v >> %u", i * bytes * 8);
		ptx_write(m, f, in, ptx_child(m, &in->arg[0], i), to, value);
	}
	say(m, "}\n");
}

static uint32_t vector_of(const struct instruction *in)
{
	return ptx_has(in, "v4") ? 4 : ptx_has(in, "v2") ? 2 : 1;
}

static const char *when(const struct instruction *in)
{
	return ptx_has(in, "volatile") || ptx_has(in, "relaxed") ||
			       ptx_has(in, "acquire") || ptx_has(in, "release")
		       ? "_NOW"
		       : "";
}

void ptx_emit_ld(struct module *m, struct function *f, struct instruction *in)
{
	enum ptx_type type = raw(ptx_nth_type(in, 0));
	uint32_t bytes = ptx_types[type].bytes, n = vector_of(in);
	char value[64];

	if (!width(m, in, 0, n))
		return;
	say(m, "{ const char *p = ");
	ptx_address(m, f, in, &in->arg[1], bytes * n);
	say(m, "; ");
	for (uint32_t i = 0; i < n; i++) {
		snprintf(value, sizeof(value), "LOAD%s(t_%s, p + %u)", when(in),
			ptx_types[type].name, i * bytes);
		ptx_write(m, f, in, ptx_child(m, &in->arg[0], i), type, value);
	}
	say(m, "}\n");
}

void ptx_emit_st(struct module *m, struct function *f, struct instruction *in)
{
	enum ptx_type type = raw(ptx_nth_type(in, 0));
	uint32_t bytes = ptx_types[type].bytes, n = vector_of(in);

	if (!width(m, in, 1, n))
		return;
	say(m, "{ char *p = ");
	ptx_address(m, f, in, &in->arg[0], bytes * n);
	say(m, "; ");
	for (uint32_t i = 0; i < n; i++) {
		say(m, "STORE%s(t_%s, p + %u, ", when(in), ptx_types[type].name,
			i * bytes);
		ptx_read(m, f, in, ptx_child(m, &in->arg[1], i), type);
		say(m, "); ");
	}
	say(m, "}\n");
}

/* Control ------------------------------------------------------------------------------------- */

static uint32_t label(struct module *m, const struct instruction *in, struct name name)
{
	struct symbol *s = name.length ? ptx_find(m, NULL, name, in->scope) : NULL;

	if (!s || s->kind != SYM_LABEL)
		bad(m, in->line, "label '%.*s' is not there", NAME(name));
	return s ? s->index : 0;
}

void ptx_emit_bra(struct module *m, struct function *f, struct instruction *in)
{
	say(m, "goto L%u;\n", label(m, in, in->arg[0].name));
}

void ptx_emit_brx(struct module *m, struct function *f, struct instruction *in)
{
	struct symbol *s;

	s = ptx_find(m, NULL, in->arg[1].name, in->scope);
	if (!in->arg[1].name.length || !s || s->kind != SYM_TARGETS) {
		bad(m, in->line, "'brx.idx' has no list of labels before it");
		return;
	}
	say(m, "switch (");
	ptx_read(m, f, in, &in->arg[0], T_u32);
	say(m, ") { ");
	for (uint32_t i = 0; i < s->count; i++)
		say(m, "case %u: goto L%u; ", i, label(m, in, m->names.at[s->index + i]));
	say(m, "default: fail_launch(); }\n");
}

/* The table has the whole C text. */
void ptx_emit_text(struct module *m, struct function *f, struct instruction *in)
{
	say(m, "%s\n", in->form->expr);
}

/* Barriers ------------------------------------------------------------------------------------ */

/* Without a number of threads: all of the block. */
void ptx_emit_bar(struct module *m, struct function *f, struct instruction *in)
{
	say(m, "arrive(t, ");
	ptx_read(m, f, in, &in->arg[0], T_u32);
	say(m, ", ");
	if (in->arg_count > 1)
		ptx_read(m, f, in, &in->arg[1], T_u32);
	else
		say(m, "0");
	say(m, ");\n");
}

void ptx_emit_arrive(struct module *m, struct function *f, struct instruction *in)
{
	ptx_emit_bar(m, f, in);
	say(m, "t->block->arrived[t->barrier]++;\n");
}

/* mma.sync.m16n8k*: registers of a lane for A, B and C; types of A, and of C and D. */
struct shape {
	uint32_t k, a, b, c;
	enum ptx_type in, out;
};

static bool shape_of(struct module *m, const struct instruction *in, struct shape *s)
{
	enum ptx_type type = ptx_nth_type(in, 1), out = ptx_nth_type(in, 0);
	uint32_t is_tf32 = type == T_tf32;

	s->in = type;
	s->out = out;
	s->k = ptx_has(in, "m16n8k16") ? 16 : ptx_has(in, "m16n8k8") ? 8 : 4;
	s->b = is_tf32 ? s->k / 4 : s->k / 8;
	s->a = s->b * 2;
	s->c = out == T_f32 ? 4 : 2;
	if (type != ptx_nth_type(in, 2) || ptx_nth_type(in, 3) != out ||
		ptx_nth_type(in, 4) || (type != T_f16 && type != T_bf16 && !is_tf32) ||
		(out != T_f32 && (out != T_f16 || type != T_f16)) ||
		s->k == (is_tf32 ? 16u : 4u))
		bad(m, in->line, "'mma' of these types and sizes is not supported");
	return !failed(m) && width(m, in, 0, s->c) && width(m, in, 1, s->a) &&
	       width(m, in, 2, s->b) && width(m, in, 3, s->c);
}

void ptx_emit_mma(struct module *m, struct function *f, struct instruction *in)
{
	struct shape s;

	if (!shape_of(m, in, &s))
		return;
	say(m, "t->mask = ~0u; ");
	for (uint32_t i = 0; i < s.a + s.b; i++) {
		uint32_t arg = i < s.a ? 1 : 2, nth = i < s.a ? i : i - s.a;

		say(m, "t->put[%u] = ", arg == 1 ? nth : 4 + nth);
		ptx_read(m, f, in, ptx_child(m, &in->arg[arg], nth), T_b32);
		say(m, "; ");
	}
	say(m, "\n");
}

void ptx_finish_mma(struct module *m, struct function *f, struct instruction *in)
{
	bool is_half = ptx_nth_type(in, 0) == T_f16;
	struct shape s;
	char value[80];

	if (failed(m) || !shape_of(m, in, &s))
		return;
	say(m, "{ t_f32 v[4]; ");
	for (uint32_t i = 0; i < 4; i++) {
		say(m, is_half ? "v[%u] = (float)get_f16((uint16_t)(" : "v[%u] = (", i);
		ptx_read(m, f, in, ptx_child(m, &in->arg[3], i * s.c / 4),
			is_half ? T_b32 : T_f32);
		say(m, is_half ? " >> %u)); " : "); ", i % 2 * 16);
	}
	say(m, "multiply(t, %u, MATRIX_%s, v); ", s.k, ptx_types[s.in].name);
	for (uint32_t i = 0; i < s.c; i++) {
		snprintf(value, sizeof(value),
			is_half ? "pack2(put_f16(v[2 * %u + 1]), put_f16(v[2 * %u]))"
				: "v[%u]",
			i, i);
		ptx_write(m, f, in, ptx_child(m, &in->arg[0], i), is_half ? T_b32 : T_f32,
			value);
	}
	say(m, "}\n");
}

/* fill: called once the addresses of all variables are known. */
static void emit_variable(struct module *m, uint32_t i)
{
	const struct variable *v = &m->variables.at[i];

	say(m, "static void fill%u(void)\n{\n\tconst uint64_t v[] = {", i);
	for (uint32_t k = 0; k < v->value_count; k++)
		say(m, "0x%llxull,%s", (ull)m->values.at[v->first_value + k],
			k % 8 == 7 ? "\n" : " ");
	say(m, "0};\n\tfill(g%u, v, %u, %u);\n}\n", i, v->value_count,
		ptx_types[v->type].bytes);
	say(m, "VARIABLE(%u, \"%.*s\", %lluull)\n", i, NAME(v->name),
		(ull)sl_max_u64(v->bytes, 1));
}

/* All registers are one structure, which is copied when a thread waits and when it continues. */
static void emit_registers(struct module *m, const struct function *f)
{
	say(m, "struct s%u {\n\tuint32_t cc;\n", f->index);
	for (uint32_t i = 0; i < f->regs.count; i++)
		say(m, "\tuint%u_t r%u;\n", ptx_types[f->regs.at[i]].bytes * 8, i);
	say(m, "};\nstatic int f%u(struct thread *t, char *const *in)\n{\n", f->index);
	say(m, "\tstruct s%u s = {0};\n", f->index);
}

/* The places where a waiting thread continues. */
static void emit_resumes(struct module *m, const struct function *f)
{
	say(m, "\ts = *(struct s%u *)t->state;\n\tswitch (t->at) {\n", f->index);
	for (uint32_t i = 0; i < f->code.count; i++)
		if (!f->code.at[i].is_label && f->code.at[i].form->finish)
			say(m, "\tcase %u: goto Y%u;\n", i + 1, i);
	say(m, "\t}\n");
}

static void emit_instruction(struct module *m, struct function *f, uint32_t i)
{
	struct instruction *in = &f->code.at[i];
	const struct form *form = in->form;

	if (in->is_label) {
		say(m, "L%u:;\n", i);
		return;
	}
	if (in->guard >= 0)
		say(m, "\tif (%ss.r%d) goto N%u;\n", in->guard_negated ? "" : "!",
			in->guard, i);
	say(m, "\t");
	(form->emit ? form->emit : ptx_emit_value)(m, f, in);
	if (form->finish) {
		say(m, "\tt->at = %u; *(struct s%u *)t->state = s; return %s;\nY%u:;\n\t",
			i + 1, f->index,
			form->emit == ptx_emit_bar ? "AT_BARRIER" : "AT_WARP", i);
		form->finish(m, f, in);
	}
	if (in->guard >= 0)
		say(m, "N%u:;\n", i);
}

static void emit_function(struct module *m, struct function *f)
{
	emit_registers(m, f);
	if (f->waits)
		emit_resumes(m, f);
	for (uint32_t i = 0; i < f->code.count && !failed(m); i++)
		emit_instruction(m, f, i);
	say(m, "\treturn GONE;\n}\n\n");
}

static void find_forms(struct module *m, struct function *f)
{
	for (uint32_t i = 0; i < f->code.count && !failed(m); i++) {
		struct instruction *in = &f->code.at[i];

		in->mod = in->mod_count ? m->mods.at + in->first_mod : NULL;
		in->arg = in->arg_count ? m->operands.at + in->first_arg : NULL;
		in->form = in->is_label ? NULL : ptx_form(m, in);
		f->waits |= in->form && in->form->finish;
	}
}

static void emit_kernel(struct module *m, const struct function *f)
{
	uint64_t shared = sl_round_up(f->shared_bytes, 16);
	uint64_t local = sl_round_up(f->local_bytes, 16);

	if (shared > SHARED_MAX)
		bad(m, f->line,
			"kernel '%.*s' has %llu bytes of shared memory; %llu are allowed",
			NAME(f->name), (ull)shared, SHARED_MAX);
	say(m, "#define PARAM_BYTES%u {0", f->index);
	for (uint32_t i = 0; i < f->params.count; i++)
		say(m, "%s%llu", i ? ", " : " + ", (ull)f->params.at[i].bytes);
	say(m, "}\n#define PARAM_ALIGN%u {0", f->index);
	for (uint32_t i = 0; i < f->params.count; i++)
		say(m, "%s%u", i ? ", " : " + ", f->params.at[i].align);
	say(m, "}\nKERNEL(%u, \"%.*s\", %u, %s, %lluu, %lluu, %uu, %uu, %lluu)\n",
		f->index, NAME(f->name), f->params.count,
		f->waits ? "together" : "one_by_one", (ull)shared, (ull)local,
		f->max_threads, (uint32_t)sl_min_u64(16 + f->regs.count, 255),
		(ull)m->const_bytes);
}

static void emit(struct module *m)
{
	for (uint32_t i = 0; i < m->functions.count; i++)
		find_forms(m, &m->functions.at[i]);
	if (failed(m))
		return;
	fputs(sl_ptx_prelude, m->out);
	for (uint32_t i = 0; i < m->variables.count; i++)
		say(m, "static char *g%u;\n", i);
	for (uint32_t i = 0; i < m->variables.count; i++)
		emit_variable(m, i);
	for (uint32_t i = 0; i < m->functions.count && !failed(m); i++) {
		emit_function(m, &m->functions.at[i]);
		emit_kernel(m, &m->functions.at[i]);
	}
}

/* A comment that names one of NVIDIA's compilers as the text's author. */
static const char *maker(const char *text)
{
	static const char *const marks[] = {"NVIDIA NVVM", "NVRTC",
		"Cuda compilation tools", "NVIDIA (R) Cuda compiler", "Based on NVVM"};

	for (size_t i = 0; i < SL_ARRAY_LEN(marks); i++)
		if (strstr(text, marks[i]))
			return marks[i];
	return NULL;
}

static CUresult write_c(struct module *m, char **c)
{
	char *text = NULL;
	size_t bytes = 0;

	m->out = open_memstream(&text, &bytes);
	if (!m->out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	emit(m);
	if (fclose(m->out) != 0)
		ptx_fail(m, CUDA_ERROR_OUT_OF_MEMORY, m->line, "out of memory");
	if (!failed(m))
		*c = sl_steal(&text);
	free(text);
	return m->result;
}

CUresult sl_ptx_translate(
	const char *text, int driver_version, char **c, struct sl_image_log *log)
{
	const char *mark = maker(text);
	struct module *m;
	CUresult r;

	*c = NULL;
	log->text[0] = '\0';
	if (mark) {
		sl_image_log_set(log,
			"refused: the text was made by NVIDIA's compilers (it says "
			"'%s'), whose "
			"licence forbids translating it for other "
			"hardware" SL_IMAGE_REMEDY,
			mark);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (strlen(text) > SL_PTX_TEXT_MAX) {
		sl_image_log_set(log, "the text is longer than %llu MiB",
			SL_PTX_TEXT_MAX / SL_MIB);
		return CUDA_ERROR_INVALID_PTX;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->at = text;
	m->end = text + strlen(text);
	m->line = 1;
	m->driver_version = driver_version;
	m->log = log;
	ptx_parse(m);
	r = failed(m) ? m->result : write_c(m, c);
	ptx_free(m);
	return r;
}
