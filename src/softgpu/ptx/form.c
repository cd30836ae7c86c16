/*
 * form - finds an instruction in the table of forms
 */
#include "softgpu/ptx/internal.h"

#include <string.h>

#define INT8   "u8 u16 u32 u64 s8 s16 s32 s64"
#define INT    "u16 u32 u64 s16 s32 s64"
#define WIDE   "u32 u64 s32 s64"
#define BITS   "b16 b32 b64"
#define LOGIC  "pred b16 b32 b64"
#define HALF1  "f16 bf16"
#define HALF   "f16 bf16 f16x2 bf16x2"
#define FLOAT  "f16 bf16 f32 f64"
#define ANY    BITS " " INT " f16 bf16 f16x2 bf16x2 f32 f64"
#define MEMORY "b8 u8 s8 b128 " ANY
#define ROUND  "rn rz rm rp"
#define SPACES "global shared shared::cta local param const param::entry param::func"
#define ORDERS "weak relaxed acquire release volatile cta gpu sys"
#define VECTORS                                                                \
	" v2 v4 ca cg cs lu cv wb wt nc L1::evict_normal L1::evict_unchanged " \
	"L1::evict_first L1::evict_last L1::no_allocate L2::64B L2::128B L2::256B"
#define LOADS SPACES " " ORDERS VECTORS
#define SYNC  "global shared shared::cta relaxed acquire release acq_rel cta gpu sys"

static const struct form forms[] = {
#define VALUE(op, required, optional, types, sources, signature, expr) \
	{#op, FORM_VALUE, required, optional, types, sources, signature, expr},
#define WARP(op, required, types, signature, given, lanes, expr)                       \
	{#op, FORM_WARP, required, "", types, "", signature, expr, given, lanes, 0, 0, \
		ptx_hand_in, ptx_take_out},
#define ATOM(required, types, expr)                                      \
	{"atom", FORM_ATOM, required, SYNC, types, "", "T", expr,        \
		.emit = ptx_emit_atom},                                  \
		{"red", FORM_ATOM, required, SYNC, types, "", "-", expr, \
			.emit = ptx_emit_atom},
#define OTHER(op, required, optional, types, least, most, ...)                        \
	{#op, FORM_OTHER, required, optional, types, "", "", "", "", "", least, most, \
		__VA_ARGS__},
#define TEXT(op, required, optional, types, text)                                \
	{#op, FORM_OTHER, required, optional, types, "", "", text, "", "", 0, 2, \
		ptx_emit_text},
#define COMPARE(op, optional, types, expr)                                             \
	{"setp", FORM_VALUE, #op, optional " and or xor", types, "", "pTT", expr},     \
		{"set", FORM_VALUE, #op, optional " and or xor", "u32 s32 f32", types, \
			"TSS", expr},
#include "softgpu/ptx/forms.def"
};

const struct form *ptx_form_at(size_t i)
{
	return i < SL_ARRAY_LEN(forms) ? &forms[i] : NULL;
}

bool ptx_among(struct name word, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, " ");

		if (n == word.length && !memcmp(words, word.at, n))
			return true;
		words += n + (words[n] == ' ');
	}
	return false;
}

bool ptx_has(const struct instruction *in, const char *mod)
{
	for (uint32_t i = 0; i < in->mod_count; i++)
		if (ptx_same(in->mod[i].name, mod))
			return true;
	return false;
}

enum ptx_type ptx_nth_type(const struct instruction *in, unsigned n)
{
	for (uint32_t i = 0; i < in->mod_count; i++)
		if (in->mod[i].type != T_NONE && !n--)
			return in->mod[i].type;
	return T_NONE;
}

static unsigned words_of(const char *words)
{
	unsigned n = *words != '\0';

	for (; *words; words++)
		n += *words == ' ';
	return n;
}

static bool types_match(const struct form *form, const struct instruction *in)
{
	const char *allowed[] = {form->types, form->sources};
	unsigned n = 0;

	if (!strcmp(form->types, "*"))
		return true;
	for (uint32_t i = 0; i < in->mod_count; i++)
		if (in->mod[i].type != T_NONE &&
			(n == 2 || !ptx_among(in->mod[i].name, allowed[n++])))
			return false;
	return n == (unsigned)(form->types[0] != '\0') + (form->sources[0] != '\0');
}

static bool matches(const struct form *form, const struct instruction *in)
{
	unsigned required = 0;

	if (!ptx_same(in->op, form->op) || !types_match(form, in))
		return false;
	for (uint32_t i = 0; i < in->mod_count; i++) {
		if (in->mod[i].type != T_NONE)
			continue;
		if (ptx_among(in->mod[i].name, form->required))
			required++;
		else if (!ptx_among(in->mod[i].name, form->optional))
			return false;
	}
	return required == words_of(form->required);
}

const struct form *ptx_form(struct module *m, const struct instruction *in)
{
	char whole[200];
	size_t at;

	for (size_t i = 0; i < SL_ARRAY_LEN(forms); i++)
		if (matches(&forms[i], in)) {
			if (forms[i].kind == FORM_OTHER &&
				(in->arg_count < forms[i].least ||
					in->arg_count > forms[i].most))
				bad(m, in->line, "'%.*s' has %u operands", NAME(in->op),
					in->arg_count);
			return &forms[i];
		}
	at = (size_t)snprintf(whole, sizeof(whole), "%.*s",
		(int)sl_min_u64(in->op.length, 60), in->op.at);
	for (uint32_t i = 0; i < in->mod_count && at + 30 < sizeof(whole); i++)
		at += (size_t)snprintf(whole + at, sizeof(whole) - at, ".%.*s",
			(int)sl_min_u64(in->mod[i].name.length, 28), in->mod[i].name.at);
	bad(m, in->line, "instruction '%s' is not known to the software GPU", whole);
	return NULL;
}
