/*
 * parse - a PTX module: variables, kernels, and their instructions
 *
 * Operands are read by their form only; the table decides what an instruction accepts (forms.def).
 */
#include "softgpu/ptx/internal.h"

#include <stdlib.h>
#include <string.h>

#define LOCAL_BYTES (512 * SL_KIB)

struct declaration {
	struct name space, name;
	enum ptx_type type;
	uint32_t align, vector, line;
	bool is_extern, is_pointer, is_open; /* open: an array without a length */
	uint64_t bytes;
};
static void declaration(struct module *m, struct declaration *d);

/* Operands ------------------------------------------------------------------------------------ */

static struct operand operand(struct module *m, struct function *f);

/* In one row; elements of inner lists are not part of it. */
static uint32_t keep_operands(
	struct module *m, const struct operand *list, uint32_t count)
{
	uint32_t first = m->operands.count;

	for (uint32_t i = 0; i < count; i++)
		*ADD(m, &m->operands) = list[i];
	return first;
}

static uint32_t operands(
	struct module *m, struct function *f, char end, uint32_t most, uint32_t *first)
{
	struct operand item[OPERANDS_MAX];
	uint32_t n = 0;

	if (++m->depth > 1000)
		bad(m, m->line, "more than 1000 braces are open");
	if (!ptx_take(m, end)) {
		do {
			if (n == most)
				bad(m, m->line, "there are more than %u operands", most);
			else
				item[n++] = operand(m, f);
		} while (ptx_take(m, ','));
		ptx_want(m, end);
	}
	m->depth--;
	*first = keep_operands(m, item, n);
	return n;
}

static struct operand list(struct module *m, struct function *f, char end)
{
	struct operand o = {.kind = OP_LIST};

	o.count = operands(m, f, end, OPERANDS_MAX, &o.index);
	return o;
}

/* + n, - n or [n] behind a register or variable. */
static void displacement(struct module *m, struct operand *o)
{
	struct operand n = {0};
	bool in_brackets = o->kind == OP_SYMBOL && ptx_take(m, '[');
	bool negative = !in_brackets && ptx_take(m, '-');
	struct token t;

	if (!in_brackets && !negative && !ptx_take(m, '+'))
		return;
	if (ptx_take(m, '-'))
		negative = true;
	t = ptx_next(m);
	if (t.kind == TOK_NUMBER)
		ptx_number(m, t.name, &n);
	if (n.kind != OP_IMM)
		bad(m, t.line, "an offset is missing");
	o->offset = (int64_t)(negative ? 0 - n.bits : n.bits);
	if (!in_brackets)
		return;
	o->offset = (int64_t)(n.bits * ptx_types[m->symbols.at[o->index].type].bytes);
	ptx_want(m, ']');
}

static struct operand named(struct module *m, struct function *f, struct name name)
{
	struct symbol *s = ptx_find(m, f, name, m->scope);
	int32_t special = s ? -1 : ptx_special(name);
	struct operand o = {.kind = OP_NAME, .name = name};

	if (special >= 0) {
		o.kind = OP_SPECIAL;
		o.index = (uint32_t)special;
	} else if (s && s->kind == SYM_REG) {
		o.kind = OP_REG;
		o.index = s->index;
	} else if (s && (s->kind <= SYM_PARAM || s->kind == SYM_TARGETS)) {
		o.kind = OP_SYMBOL;
		o.index = (uint32_t)(s - m->symbols.at);
	} else if (name.at[0] == '%') {
		bad(m, m->line, "register '%.*s' is not declared", NAME(name));
	}
	if (o.kind == OP_REG || o.kind == OP_SYMBOL)
		displacement(m, &o);
	return o;
}

static void negate(struct operand *o, bool is_minus)
{
	if (o->kind == OP_IMM)
		o->bits = is_minus ? 0 - o->bits : !o->bits;
	else if (o->kind == OP_FLOAT || o->kind == OP_DOUBLE)
		o->bits ^= o->kind == OP_FLOAT ? 1ull << 31 : 1ull << 63;
	else
		o->negated = true;
}

static struct operand primary(struct module *m, struct function *f)
{
	struct operand o = {0};
	struct token t = ptx_next(m);
	bool is_minus = t.kind == TOK_CHAR && *t.name.at == '-';
	bool is_sign = is_minus || (t.kind == TOK_CHAR && *t.name.at == '!');

	if (is_sign)
		t = ptx_next(m);
	if (t.kind == TOK_NUMBER)
		ptx_number(m, t.name, &o);
	else if (t.kind == TOK_NAME && !ptx_same(t.name, "_"))
		o = named(m, f, t.name);
	else if (t.kind == TOK_END)
		bad(m, t.line, "the text ends inside an instruction");
	else if (t.kind != TOK_NAME)
		bad(m, t.line, "'%.*s' is no operand", NAME(t.name));
	if (is_sign)
		negate(&o, is_minus);
	return o;
}

static struct operand operand(struct module *m, struct function *f)
{
	struct operand pair[2];

	if (ptx_take(m, '{'))
		return list(m, f, '}');
	if (ptx_take(m, '('))
		return list(m, f, ')');
	if (ptx_take(m, '[')) {
		pair[0] = primary(m, f);
		pair[0].is_memory = true;
		ptx_want(m, ']');
		return pair[0];
	}
	pair[0] = primary(m, f);
	if (!ptx_take(m, '|'))
		return pair[0];
	pair[1] = primary(m, f);
	return (struct operand){
		.kind = OP_LIST, .count = 2, .index = keep_operands(m, pair, 2)};
}

/* Declarations -------------------------------------------------------------------------------- */

/* .reg .type name, family<count>; */
static void registers(struct module *m, struct function *f)
{
	struct token t = ptx_next(m);
	enum ptx_type type = ptx_type_of(t.name);

	if (t.kind != TOK_DOT || type == T_NONE)
		bad(m, t.line, "a register has no type that is known here");
	do {
		struct operand n = {0};
		struct symbol *s;

		t = ptx_next(m);
		if (t.kind != TOK_NAME)
			bad(m, t.line, "a register has no name");
		s = ptx_declare(m, t.name, SYM_REG);
		s->type = type;
		if (ptx_take(m, '<')) {
			s->kind = SYM_REGS;
			t = ptx_next(m);
			if (t.kind == TOK_NUMBER)
				ptx_number(m, t.name, &n);
			s->count = (uint32_t)sl_min_u64(n.bits, 1u << 30);
			ptx_want(m, '>');
		} else {
			s->index = ptx_new_reg(m, f, type);
		}
	} while (ptx_take(m, ','));
	ptx_want(m, ';');
}

static void memory(struct module *m, struct function *f)
{
	struct declaration d;
	struct symbol *s;

	declaration(m, &d);
	s = ptx_declare(m, d.name, SYM_LOCAL);
	s->type = d.type;
	s->bytes = d.bytes;
	s->align = d.align;
	if (ptx_same(d.space, "shared")) {
		s->kind = d.is_extern ? SYM_DYNAMIC : SYM_SHARED;
	} else {
		s->offset = sl_round_up(f->local_bytes, d.align);
		f->local_bytes = s->offset + d.bytes;
	}
	if (f->local_bytes > LOCAL_BYTES)
		bad(m, d.line, "there are more than %llu bytes of local memory",
			LOCAL_BYTES);
	ptx_want(m, ';');
}

/* The label in front names the list that a brx.idx chooses from. */
static bool targets(struct module *m, struct name name)
{
	struct token t = ptx_peek(m);
	struct symbol *s;

	if (t.kind != TOK_DOT || !ptx_same(t.name, "branchtargets"))
		return false;
	(void)ptx_next(m);
	s = ptx_declare(m, name, SYM_TARGETS);
	s->index = m->names.count;
	do
		*ADD(m, &m->names) = ptx_next(m).name;
	while (ptx_take(m, ','));
	s->count = m->names.count - s->index;
	ptx_want(m, ';');
	return true;
}

static void inner_directive(struct module *m, struct function *f)
{
	const char *start = m->at;
	uint32_t line = m->line;
	struct token t = ptx_next(m);

	if (ptx_same(t.name, "reg")) {
		registers(m, f);
	} else if (ptx_same(t.name, "loc")) {
		m->at += strcspn(m->at, "\n");
	} else if (ptx_same(t.name, "pragma")) {
		ptx_skip_to(m, ';');
	} else if (ptx_same(t.name, "local") || ptx_same(t.name, "shared") ||
		   ptx_same(t.name, "extern")) {
		m->at = start;
		m->line = line;
		memory(m, f);
	} else {
		bad(m, t.line, "'.%.*s' is not supported inside a function",
			NAME(t.name));
	}
}

/* Instructions -------------------------------------------------------------------------------- */

static void guard(struct module *m, struct function *f, struct instruction *in)
{
	struct operand o;

	in->guard = -1;
	if (!ptx_take(m, '@'))
		return;
	o = primary(m, f);
	if (!failed(m) && (o.kind != OP_REG || f->regs.at[o.index] != T_pred))
		bad(m, m->line, "a guard is no predicate");
	in->guard = (int32_t)o.index;
	in->guard_negated = o.negated;
}

static void instruction(struct module *m, struct function *f)
{
	struct instruction in = {.scope = m->scope};
	struct token t;

	guard(m, f, &in);
	t = ptx_next(m);
	in.op = t.name;
	in.line = t.line;
	if (t.kind != TOK_NAME)
		bad(m, t.line, "'%.*s' is no instruction", NAME(t.name));
	in.is_label = in.guard < 0 && ptx_take(m, ':');
	if (in.is_label && targets(m, t.name))
		return;
	if (in.is_label) {
		ptx_declare(m, t.name, SYM_LABEL)->index = f->code.count;
	} else {
		in.first_mod = m->mods.count;
		while (ptx_peek(m).kind == TOK_DOT) {
			t = ptx_next(m);
			*ADD(m, &m->mods) = (struct mod){t.name, ptx_type_of(t.name)};
		}
		in.mod_count = m->mods.count - in.first_mod;
		in.arg_count = operands(m, f, ';', 8, &in.first_arg);
	}
	*ADD(m, &f->code) = in;
}

static void parse_body(struct module *m, struct function *f)
{
	uint32_t base = m->depth;

	while (!failed(m)) {
		struct token t = ptx_peek(m);

		if (t.kind == TOK_END) {
			bad(m, t.line, "the text ends inside function '%.*s'",
				NAME(f->name));
		} else if (ptx_take(m, '{')) {
			ptx_scope_open(m);
		} else if (ptx_take(m, '}')) {
			if (m->depth == base)
				return;
			ptx_scope_close(m);
		} else if (t.kind == TOK_DOT) {
			inner_directive(m, f);
		} else if (!ptx_take(m, ';')) {
			instruction(m, f);
		}
	}
}

#define THREADS_MAX  1024u
#define PARAMS_MAX   64u
#define PARAM_BYTES  4096u
#define OBJECT_BYTES (1ull << 40)
#define CONST_BYTES  (64 * SL_KIB)
#define CAPABILITY   80 /* of the GPU that is modelled */

static uint64_t want_integer(struct module *m)
{
	struct operand o = {0};
	struct token t = ptx_next(m);

	if (t.kind == TOK_NUMBER)
		ptx_number(m, t.name, &o);
	if (o.kind != OP_IMM)
		bad(m, t.line, "a number is missing");
	return o.bits;
}

#define SPACES  "reg param global const shared local"
#define LINKING "visible extern weak common"

/* .ptr is followed by space and alignment of the target, which do not matter. */
static void declared_word(struct module *m, struct declaration *d, struct token t)
{
	if (ptx_type_of(t.name) != T_NONE)
		d->type = ptx_type_of(t.name);
	else if (ptx_among(t.name, SPACES) && !d->is_pointer)
		d->space = t.name;
	else if (ptx_same(t.name, "ptr"))
		d->is_pointer = true;
	else if (ptx_same(t.name, "align") && d->is_pointer)
		(void)want_integer(m);
	else if (ptx_same(t.name, "align"))
		d->align = (uint32_t)want_integer(m);
	else if (ptx_same(t.name, "v2") || ptx_same(t.name, "v4"))
		d->vector = (uint32_t)(t.name.at[1] - '0');
	else if (ptx_same(t.name, "extern"))
		d->is_extern = true;
	else if (!ptx_among(t.name, SPACES) && !ptx_among(t.name, LINKING))
		bad(m, t.line, "a declaration with .%.*s is not supported", NAME(t.name));
}

static void declaration(struct module *m, struct declaration *d)
{
	struct token t;

	*d = (struct declaration){.vector = 1};
	while ((t = ptx_next(m)).kind == TOK_DOT)
		declared_word(m, d, t);
	d->name = t.name;
	d->line = t.line;
	if (t.kind != TOK_NAME || t.name.length > 255)
		bad(m, t.line, "a name is missing, or has more than 255 characters");
	else if (d->type == T_NONE)
		bad(m, t.line, "'%.*s' has no type", NAME(t.name));
	d->bytes = ptx_types[d->type].bytes * d->vector;
	if (!d->align)
		d->align = (uint32_t)d->bytes;
	if (d->align & (d->align - 1) || d->align > 4096)
		bad(m, t.line, "'%.*s' has a wrong alignment", NAME(t.name));
	while (ptx_take(m, '[')) {
		d->is_open |= ptx_peek(m).kind != TOK_NUMBER;
		uint64_t n = d->is_open ? 0 : want_integer(m);

		if (n > OBJECT_BYTES || d->bytes * n > OBJECT_BYTES)
			bad(m, d->line, "'%.*s' is too large", NAME(d->name));
		d->bytes = failed(m) ? 0 : d->bytes * n;
		ptx_want(m, ']');
	}
	if (d->is_open && !(ptx_same(d->space, "shared") && d->is_extern))
		bad(m, d->line, "'%.*s' has no length", NAME(d->name));
}

/* Variables ----------------------------------------------------------------------------------- */

static uint64_t first_value(struct module *m, enum ptx_type type)
{
	struct operand o = {0};
	bool negative = ptx_take(m, '-');
	struct token t = ptx_next(m);
	double number;
	float single;

	if (t.kind != TOK_NUMBER)
		bad(m, t.line,
			"a variable's value is no number: only these are supported");
	else
		ptx_number(m, t.name, &o);
	if (o.kind == OP_DOUBLE && ptx_types[type].bytes == 4) {
		memcpy(&number, &o.bits, sizeof(number));
		single = (float)number;
		o.bits = 0;
		memcpy(&o.bits, &single, sizeof(single));
		o.kind = OP_FLOAT;
	}
	return !negative            ? o.bits
	       : o.kind == OP_IMM   ? 0 - o.bits
	       : o.kind == OP_FLOAT ? o.bits ^ 1ull << 31
				    : o.bits ^ 1ull << 63;
}

static void initialiser(struct module *m, struct variable *v, uint32_t line)
{
	uint32_t depth = 0;

	do {
		while (ptx_take(m, '{'))
			depth++;
		*ADD(m, &m->values) = first_value(m, v->type);
		while (depth && ptx_take(m, '}'))
			depth--;
	} while (ptx_take(m, ','));
	v->value_count = m->values.count - v->first_value;
	if (depth || (uint64_t)v->value_count * ptx_types[v->type].bytes > v->bytes)
		bad(m, line, "'%.*s' has more values than room, or braces",
			NAME(v->name));
}

static void global_variable(struct module *m, const struct declaration *d)
{
	struct variable v = {d->name, d->type, d->bytes, m->values.count, 0};

	if (d->is_extern)
		bad(m, d->line, "'%.*s' is in another module; linking is not supported",
			NAME(d->name));
	ptx_declare(m, d->name, SYM_GLOBAL)->index = m->variables.count;
	if (ptx_same(d->space, "const"))
		m->const_bytes += d->bytes;
	if (m->const_bytes > CONST_BYTES)
		bad(m, d->line, "there are more than %llu bytes of .const", CONST_BYTES);
	if (ptx_take(m, '='))
		initialiser(m, &v, d->line);
	*ADD(m, &m->variables) = v;
}

static void variable(struct module *m)
{
	struct declaration d;

	declaration(m, &d);
	if (ptx_same(d.space, "shared")) {
		struct symbol *s =
			ptx_declare(m, d.name, d.is_extern ? SYM_DYNAMIC : SYM_SHARED);

		s->bytes = d.bytes;
		s->align = d.align;
	} else if (ptx_same(d.space, "global") || ptx_same(d.space, "const")) {
		global_variable(m, &d);
	} else {
		bad(m, d.line, "'%.*s' is no .global, .const or .shared variable",
			NAME(d.name));
	}
	ptx_want(m, ';');
}

/* Functions ----------------------------------------------------------------------------------- */

static void parameters(struct module *m, struct function *f)
{
	if (!ptx_take(m, '(') || ptx_take(m, ')'))
		return;
	do {
		struct declaration d;
		struct symbol *s;

		declaration(m, &d);
		s = ptx_declare(m, d.name, SYM_PARAM);
		s->index = f->params.count;
		s->type = d.type;
		s->bytes = d.bytes;
		*ADD(m, &f->params) = (struct parameter){d.bytes, d.align};
	} while (ptx_take(m, ','));
	ptx_want(m, ')');
}

static void check_params(struct module *m, const struct function *f)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < f->params.count; i++)
		at = sl_round_up(at, f->params.at[i].align) + f->params.at[i].bytes;
	if (f->params.count > PARAMS_MAX || at > PARAM_BYTES)
		bad(m, f->line,
			"kernel '%.*s' has more than %u parameters or %u bytes of them",
			NAME(f->name), PARAMS_MAX, PARAM_BYTES);
}

/* .maxntid x, y, z and the like; tuning hints are skipped. */
static void bounds(struct module *m, struct function *f)
{
	f->max_threads = THREADS_MAX;
	while (ptx_peek(m).kind == TOK_DOT) {
		struct token t = ptx_next(m);
		uint64_t product = 1;

		if (ptx_same(t.name, "pragma"))
			ptx_skip_to(m, ';');
		if (ptx_peek(m).kind != TOK_NUMBER)
			continue;
		do
			product = sl_min_u64(product * want_integer(m), THREADS_MAX);
		while (ptx_take(m, ','));
		if (ptx_same(t.name, "maxntid") || ptx_same(t.name, "reqntid"))
			f->max_threads = (uint32_t)product;
	}
}

static void kernel(struct module *m)
{
	struct token t = ptx_next(m);
	struct function *f = ADD(m, &m->functions);

	if (t.kind != TOK_NAME || t.name.length > 255)
		bad(m, t.line,
			"a kernel has no name, or one of more than 255 characters");
	*f = (struct function){
		.name = t.name, .line = t.line, .index = m->functions.count - !failed(m)};
	(void)ptx_declare(m, t.name, SYM_FUNCTION);
	ptx_scope_open(m);
	parameters(m, f);
	check_params(m, f);
	bounds(m, f);
	ptx_want(m, '{');
	parse_body(m, f);
	ptx_scope_close(m);
}

/* The module ---------------------------------------------------------------------------------- */

static void version(struct module *m, struct token t)
{
	int newest = m->driver_version / 1000 - 4; /* CUDA 12 has PTX 8 */

	if (t.kind != TOK_NUMBER)
		bad(m, t.line, "no version follows");
	else if (atoi(t.name.at) > newest)
		ptx_fail(m, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, t.line,
			"PTX %.*s is newer than this driver, which knows PTX up to %d.x",
			NAME(t.name), newest);
}

static void target(struct module *m, struct token t)
{
	if (t.kind != TOK_NAME || t.name.length < 5 || memcmp(t.name.at, "sm_", 3) != 0)
		bad(m, t.line, "no target follows");
	else if (atoi(t.name.at + 3) > CAPABILITY)
		bad(m, t.line, "target %.*s is newer than this GPU, which is sm_%d",
			NAME(t.name), CAPABILITY);
	while (ptx_take(m, ','))
		(void)ptx_next(m);
}

static void directive(struct module *m, struct token t, const char *start)
{
	while (t.kind == TOK_DOT && ptx_among(t.name, LINKING))
		t = ptx_next(m);
	if (ptx_same(t.name, "version")) {
		version(m, ptx_next(m));
	} else if (ptx_same(t.name, "target")) {
		target(m, ptx_next(m));
	} else if (ptx_same(t.name, "address_size")) {
		if (want_integer(m) != 64)
			bad(m, t.line, "addresses have 64 bits here");
	} else if (ptx_same(t.name, "entry")) {
		kernel(m);
	} else if (ptx_same(t.name, "func")) {
		if (ptx_take(m, '('))
			ptx_skip_to(m, ')');
		(void)ptx_next(m); /* the name, by which libdevice is refused */
		bad(m, t.line,
			"functions are not supported: have the compiler inline them");
	} else if (ptx_same(t.name, "section")) {
		ptx_skip_to(m, '}'); /* debugging information */
	} else if (ptx_same(t.name, "file")) {
		m->at += strcspn(m->at, "\n");
	} else if (ptx_same(t.name, "pragma")) {
		ptx_skip_to(m, ';');
	} else if (t.kind == TOK_DOT && ptx_among(t.name, SPACES)) {
		m->at = start;
		m->line = t.line;
		variable(m);
	} else {
		bad(m, t.line, "'%.*s' is no directive that is known here", NAME(t.name));
	}
}

void ptx_parse(struct module *m)
{
	struct token t = ptx_peek(m);

	if (t.kind != TOK_DOT || !ptx_same(t.name, "version"))
		bad(m, t.line, "PTX starts with .version");
	while (ptx_peek(m).kind != TOK_END) {
		const char *start = m->at;

		directive(m, ptx_next(m), start);
	}
}
