/*
 * operand - operands as C, and the instructions that forms.def describes completely
 *
 * A register is an unsigned integer of its width, whatever it holds; get_TYPE and put_TYPE of
 * prelude.def convert between bits and values. The operands become typed variables a, b, c and e of
 * a block, followed by the form's expression. Any of these instructions may have modifiers for
 * rounding, saturation and flushing small numbers to zero.
 */
#include "softgpu/ptx/internal.h"

#include <string.h>

static const struct {
	const char *name, *c;
} specials[] = {
#define SPECIAL(name, c) {name, c},
#include "softgpu/ptx/special.def"
};

int32_t ptx_special(struct name name)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(specials); i++)
		if (ptx_same(name, specials[i].name))
			return (int32_t)i;
	return -1;
}

const struct operand *ptx_child(struct module *m, const struct operand *o, uint32_t n)
{
	return o->kind == OP_LIST ? &m->operands.at[o->index + n] : o;
}

uint32_t ptx_width(const struct operand *o)
{
	return o->kind == OP_LIST ? o->count : 1;
}

/* The bits of a constant as a value of that many bytes. */
static uint64_t constant(const struct operand *o, unsigned bytes)
{
	union {
		uint64_t bits;
		double value;
	} wide = {.bits = o->bits};
	union {
		uint32_t bits;
		float value;
	} single = {.bits = (uint32_t)o->bits};

	if (o->kind == OP_DOUBLE && bytes == 4) {
		single.value = (float)wide.value;
		wide.bits = single.bits;
	} else if (o->kind == OP_FLOAT && bytes == 8) {
		wide.value = single.value;
	}
	return bytes < 8 ? wide.bits & ((1ull << bytes * 8) - 1) : wide.bits;
}

static void read_constant(struct module *m, const struct instruction *in,
	const struct operand *o, enum ptx_type type)
{
	const struct type_info *info = &ptx_types[type];
	bool is_float = type == T_f32 || type == T_f64;

	if ((o->kind == OP_IMM && is_float) || (o->kind != OP_IMM && info->bytes < 4))
		bad(m, in->line, "a constant is no value of type .%s", info->name);
	if (type == T_pred)
		say(m, "%d", o->bits != 0);
	else
		say(m, "get_%s(0x%llxull)", info->name,
			(unsigned long long)constant(o, info->bytes));
}

/* A block's memory is laid out per kernel, in the order of its variables' use. */
static uint64_t place(struct function *f, struct symbol *s)
{
	if (s->placed_in != f->index + 1) {
		s->placed_in = f->index + 1;
		s->offset = sl_round_up(f->shared_bytes, s->align);
		f->shared_bytes = s->offset + s->bytes;
	}
	return s->offset;
}

static void symbol_address(struct module *m, struct function *f, const struct operand *o)
{
	struct symbol *s = &m->symbols.at[o->index];

	switch (s->kind) {
	case SYM_GLOBAL: say(m, "((uint64_t)(uintptr_t)g%u", s->index); break;
	case SYM_PARAM: say(m, "((uint64_t)(uintptr_t)in[%u]", s->index); break;
	case SYM_SHARED: say(m, "(%lluull", (unsigned long long)place(f, s)); break;
	case SYM_DYNAMIC: say(m, "((uint64_t)t->dynamic"); break;
	default: say(m, "(%lluull", (unsigned long long)s->offset);
	}
	say(m, " + %lldll)", (long long)o->offset);
}

static bool is_variable(const struct symbol *s)
{
	return s->kind >= SYM_GLOBAL && s->kind <= SYM_PARAM;
}

static void read_register(struct module *m, struct function *f,
	const struct instruction *in, const struct operand *o, enum ptx_type type)
{
	enum ptx_type reg = f->regs.at[o->index];

	if ((reg == T_pred) != (type == T_pred) ||
		ptx_types[reg].bytes < ptx_types[type].bytes)
		bad(m, in->line, "a register is .%s where .%s is wanted",
			ptx_types[reg].name, ptx_types[type].name);
	if (type == T_pred)
		say(m, "%ss.r%u", o->negated ? "!" : "", o->index);
	else
		say(m, "%sget_%s(s.r%u + %lldll)", o->negated ? "-" : "",
			ptx_types[type].name, o->index, (long long)o->offset);
}

void ptx_read(struct module *m, struct function *f, const struct instruction *in,
	const struct operand *o, enum ptx_type type)
{
	switch (o->is_memory ? OP_LIST : o->kind) {
	case OP_REG: read_register(m, f, in, o, type); return;
	case OP_IMM:
	case OP_FLOAT:
	case OP_DOUBLE: read_constant(m, in, o, type); return;
	case OP_NONE:
	case OP_LIST:
		bad(m, in->line, "an operand of '%.*s' is no value", NAME(in->op));
		return;
	default: break;
	}
	say(m, "get_%s(", ptx_types[type].name);
	if (o->kind == OP_SPECIAL)
		say(m, "%s", specials[o->index].c);
	else if (o->kind == OP_NAME)
		bad(m, in->line, "'%.*s' is not declared", NAME(o->name));
	else if (is_variable(&m->symbols.at[o->index]))
		symbol_address(m, f, o);
	else
		bad(m, in->line, "an operand of '%.*s' is no variable", NAME(in->op));
	say(m, ")");
}

void ptx_write(struct module *m, struct function *f, const struct instruction *in,
	const struct operand *o, enum ptx_type type, const char *value)
{
	const struct type_info *info = &ptx_types[type];
	bool is_reg = o->kind == OP_REG && !o->is_memory;
	enum ptx_type reg = is_reg ? f->regs.at[o->index] : T_NONE;
	const char *mode = ptx_has(in, "rz")   ? "_rz"
			   : ptx_has(in, "rm") ? "_rm"
			   : ptx_has(in, "rp") ? "_rp"
					       : "";

	if (o->kind == OP_NONE) {
		say(m, "(void)(%s); ", value);
		return;
	}
	if (!is_reg || (reg == T_pred) != (type == T_pred) ||
		ptx_types[reg].bytes < info->bytes)
		bad(m, in->line, "the result of '%.*s' is no register for .%s",
			NAME(in->op), info->name);
	say(m, "s.r%u = ", o->index);
	if (type == T_pred)
		say(m, "(%s) != 0; ", value);
	else if (info->kind == 'f')
		say(m, "put_%s%s(%s); ", info->name, info->bytes == 2 ? mode : "", value);
	else
		say(m, "(uint%u_t)(t_%s)(%s); ", ptx_types[reg].bytes * 8, info->name,
			value);
}

/* "shared", "local" or nothing: the window of the address. */
static const char *window(const struct instruction *in, const struct symbol *s)
{
	bool is_shared = ptx_has(in, "shared") || ptx_has(in, "shared::cta");
	bool is_plain =
		ptx_has(in, "global") || ptx_has(in, "const") || ptx_has(in, "param");

	if (s && !is_plain && !ptx_has(in, "local"))
		is_shared |= s->kind == SYM_SHARED || s->kind == SYM_DYNAMIC;
	if (is_shared)
		return "shared";
	return ptx_has(in, "local") || (s && s->kind == SYM_LOCAL && !is_plain) ? "local"
										: "";
}

void ptx_address(struct module *m, struct function *f, const struct instruction *in,
	const struct operand *o, unsigned bytes)
{
	struct symbol *s = o->kind == OP_SYMBOL ? &m->symbols.at[o->index] : NULL;
	const char *space = window(in, s);
	bool is_reg = o->kind == OP_REG && f->regs.at[o->index] != T_pred;

	if (!o->is_memory || (s && !is_variable(s)) ||
		(!s && !is_reg && o->kind != OP_IMM))
		bad(m, in->line, "'%.*s' has no address", NAME(in->op));
	if (s && s->kind == SYM_PARAM &&
		(o->offset < 0 || (uint64_t)o->offset + bytes > s->bytes))
		bad(m, in->line, "'%.*s' is shorter than %lld + %u bytes", NAME(o->name),
			(long long)o->offset, bytes);
	say(m, *space ? "%s_at(t, %u, " : "%smemory_at(%u, ", space, bytes);
	if (s)
		symbol_address(m, f, o);
	else if (is_reg)
		say(m, "(uint64_t)s.r%u + %lldll", o->index, (long long)o->offset);
	else
		say(m, "0x%llxull", (unsigned long long)o->bits);
	say(m, ")");
}

static const char operand_names[] = "abce";

static enum ptx_type unsigned_of(unsigned bytes)
{
	return bytes == 1   ? T_u8
	       : bytes == 2 ? T_u16
	       : bytes == 4 ? T_u32
	       : bytes == 8 ? T_u64
			    : T_b128;
}

static enum ptx_type wide_of(enum ptx_type t)
{
	return t == T_s16   ? T_s32
	       : t == T_s32 ? T_s64
			    : unsigned_of(ptx_types[t].bytes * 2);
}

/* The type that a letter of a signature stands for. */
static enum ptx_type signature_type(char letter, enum ptx_type type, enum ptx_type source)
{
	switch (letter) {
	case 'T': return type;
	case 'S': return source;
	case 'B': return unsigned_of(ptx_types[type].bytes);
	case 'W': return wide_of(type);
	case 'p': return T_pred;
	default: return T_u32;
	}
}

static const char *rounding(const struct instruction *in)
{
	return ptx_has(in, "rz")   ? "rz"
	       : ptx_has(in, "rm") ? "rm"
	       : ptx_has(in, "rp") ? "rp"
				   : "rn";
}

/* The expression with its $ words replaced. */
static void expand(FILE *out, const struct instruction *in, enum ptx_type type)
{
	const struct type_info *info = &ptx_types[type];
	const char *source = ptx_types[ptx_nth_type(in, 1)].name;

	for (const char *at = in->form->expr; *at; at++) {
		if (*at != '$') {
			fputc(*at, out);
			continue;
		}
		switch (*++at) {
		case 'T': fprintf(out, "t_%s", info->name); break;
		case 'S': fprintf(out, "t_%s", source); break;
		case 'W': fprintf(out, "t_%s", ptx_types[wide_of(type)].name); break;
		case 'U': fprintf(out, "uint%u_t", info->bytes * 8); break;
		case 't': fputs(info->name, out); break;
		case 's': fputs(source, out); break;
		case 'n': fprintf(out, "%u", info->bytes * 8); break;
		default: fputs(rounding(in), out); break;
		}
	}
}

static bool is_float(enum ptx_type type)
{
	return ptx_types[type].kind == 'f';
}

/* Conversions flush singles only. */
static bool flushes(const struct instruction *in, enum ptx_type type)
{
	return is_float(type) && ptx_has(in, "ftz") &&
	       (type == T_f32 || !ptx_same(in->op, "cvt"));
}

/* lane: -1, or the half of a register. */
static void declare(struct module *m, struct function *f, const struct instruction *in,
	const struct operand *o, char name, enum ptx_type type, int lane)
{
	const char *word = ptx_types[type].name;
	bool flush = flushes(in, type);

	say(m, "t_%s %c = ", word, name);
	if (flush)
		say(m, "flush_%s(", word);
	if (lane >= 0)
		say(m, "get_%s((uint16_t)(", word);
	ptx_read(m, f, in, o, lane >= 0 ? T_b32 : type);
	if (lane >= 0)
		say(m, " >> %d))", lane * 16);
	say(m, flush ? "); " : "; ");
}

static void declare_operands(struct module *m, struct function *f,
	const struct instruction *in, enum ptx_type type, int lane)
{
	const char *letter = in->form->signature + 1;
	uint32_t first = in->form->signature[0] != '-';

	for (uint32_t i = 0; letter[i]; i++)
		declare(m, f, in, &in->arg[first + i], operand_names[i],
			signature_type(letter[i], type, ptx_nth_type(in, 1)),
			letter[i] == 'T' ? lane : -1);
}

/* Declares v from the operands: rounded, saturated, flushed. */
static void declare_value(struct module *m, const struct instruction *in,
	enum ptx_type type, enum ptx_type result)
{
	const char *word = ptx_types[result].name, *mode = rounding(in);
	bool turned = (result == T_f32 || result == T_f64) && strcmp(mode, "rn") != 0;

	if (turned)
		say(m, "int mode = round_to(ROUND_%s); ", mode);
	for (uint32_t i = 0; turned && in->form->signature[1 + i]; i++)
		say(m, "HIDE(%c); ", operand_names[i]);
	say(m, "t_%s v = (t_%s)(", word, word);
	expand(m->out, in, type);
	say(m, turned ? "); HIDE(v); round_back(mode); " : "); ");
	if (is_float(result) && ptx_has(in, "sat"))
		say(m, "v = v > 0 ? (v < 1 ? v : 1) : 0; ");
	if (flushes(in, result))
		say(m, "v = flush_%s(get_%s(put_%s(v))); ", word, word, word);
}

/* setp and set may combine the comparison with a predicate: the operator, or NULL. */
static const char *joined_by(const struct instruction *in)
{
	if (!ptx_same(in->op, "setp") && !ptx_same(in->op, "set"))
		return NULL;
	return ptx_has(in, "and")   ? "&"
	       : ptx_has(in, "or")  ? "|"
	       : ptx_has(in, "xor") ? "^"
				    : NULL;
}

/* setp.lt.and p|q, a, b, c: both results of the comparison are combined with c. */
static void compare(struct module *m, struct function *f, const struct instruction *in,
	enum ptx_type result)
{
	const char *sign = joined_by(in);
	const struct operand *to = &in->arg[0];

	say(m, "t_pred v = %s, w = !v; ", in->form->expr);
	if (sign) {
		say(m, "t_pred c = ");
		ptx_read(m, f, in, &in->arg[3], T_pred);
		say(m, "; v = v %s c; w = w %s c; ", sign, sign);
	}
	if (ptx_same(in->op, "set"))
		ptx_write(m, f, in, to, result,
			result == T_f32 ? "v ? 1.f : 0.f" : "v ? -1 : 0");
	for (uint32_t i = 0; ptx_same(in->op, "setp") && i < ptx_width(to) && i < 2; i++)
		ptx_write(m, f, in, ptx_child(m, to, i), T_pred, i ? "w" : "v");
}

static bool count_operands(struct module *m, const struct instruction *in)
{
	uint32_t want = (uint32_t)strlen(in->form->signature) -
			(in->form->signature[0] == '-') + (joined_by(in) != NULL);

	if (in->arg_count != want)
		bad(m, in->line, "'%.*s' has %u operands instead of %u", NAME(in->op),
			in->arg_count, want);
	return in->arg_count == want;
}

void ptx_emit_value(struct module *m, struct function *f, struct instruction *in)
{
	enum ptx_type type = ptx_nth_type(in, 0), half = type == T_f16x2 ? T_f16 : T_bf16;
	enum ptx_type result = signature_type(in->form->signature[0], type, T_NONE);
	bool has_lanes = ptx_types[result].kind == 'l' && in->form->signature[1] == 'T';

	if (!count_operands(m, in))
		return;
	say(m, has_lanes ? "{ uint32_t d = 0; " : "{ ");
	for (int lane = 0; has_lanes && lane < 2; lane++) {
		say(m, "{ ");
		declare_operands(m, f, in, half, lane);
		declare_value(m, in, half, half);
		say(m, "d |= (uint32_t)put_%s(v) << %d; } ", ptx_types[half].name,
			lane * 16);
	}
	if (!has_lanes)
		declare_operands(m, f, in, type, -1);
	if (ptx_same(in->op, "setp") || ptx_same(in->op, "set")) {
		compare(m, f, in, result);
	} else {
		if (!has_lanes)
			declare_value(m, in, type, result);
		ptx_write(m, f, in, &in->arg[0], result, has_lanes ? "d" : "v");
	}
	say(m, "}\n");
}

void ptx_hand_in(struct module *m, struct function *f, struct instruction *in)
{
	if (!count_operands(m, in))
		return;
	say(m, "{ ");
	declare_operands(m, f, in, ptx_nth_type(in, 0), -1);
	say(m, "hand_in(t, %s, %s); }\n", in->form->put, in->form->mask);
}

void ptx_take_out(struct module *m, struct function *f, struct instruction *in)
{
	enum ptx_type type = ptx_nth_type(in, 0);
	enum ptx_type result = signature_type(in->form->signature[0], type, T_NONE);

	if (failed(m) || in->form->signature[0] == '-')
		return;
	say(m, "{ uint32_t q = 0; ");
	declare_operands(m, f, in, type, -1);
	declare_value(m, in, type, result);
	ptx_write(m, f, in, ptx_child(m, &in->arg[0], 0), result, "v");
	if (ptx_width(&in->arg[0]) > 1)
		ptx_write(m, f, in, ptx_child(m, &in->arg[0], 1), T_pred, "q");
	say(m, "}\n");
}

/* A loop of compare-and-swap over the bits, whatever their type. */
void ptx_emit_atom(struct module *m, struct function *f, struct instruction *in)
{
	enum ptx_type type = ptx_nth_type(in, 0);
	uint32_t first = in->form->signature[0] != '-', has_c = ptx_has(in, "cas");
	const char *word = ptx_types[type].name;
	unsigned bits = ptx_types[type].bytes * 8;
	char value[32];

	if (in->arg_count != first + 2 + has_c) {
		bad(m, in->line, "'%.*s' has %u operands instead of %u", NAME(in->op),
			in->arg_count, first + 2 + has_c);
		return;
	}
	say(m, "{ ");
	declare(m, f, in, &in->arg[first + 1], 'b', type, -1);
	if (has_c)
		declare(m, f, in, &in->arg[first + 2], 'c', type, -1);
	say(m, "uint%u_t *p = (void *)", bits);
	ptx_address(m, f, in, &in->arg[first], bits / 8);
	say(m, "; uint%u_t was = *(volatile uint%u_t *)p, now; do { ", bits, bits);
	say(m, "t_%s o = get_%s(was); now = put_%s(", word, word, word);
	expand(m->out, in, type);
	say(m, "); } while (!__atomic_compare_exchange_n(p, &was, now, 0, 5, 5)); ");
	snprintf(value, sizeof(value), "get_%s(was)", word);
	if (first)
		ptx_write(m, f, in, &in->arg[0], type, value);
	say(m, "}\n");
}
