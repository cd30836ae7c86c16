/*
 * text - words, numbers and signs of PTX, and the names that it declares
 *
 * A word with its dot is one token, so an opcode is a name followed by dotted words. After an error
 * the text seems to have ended. Names are in one hash table by scope; a look-up goes outwards.
 * Registers come as families (%r<100>), of which a text may declare millions: each is made at first
 * use, and found by its family instead of a scope.
 */
#include "softgpu/ptx/internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const struct type_info ptx_types[T_COUNT] = {
#define TYPE(name, bytes, kind) [T_##name] = {#name, bytes, kind},
#include "softgpu/ptx/types.def"
#undef TYPE
};

bool ptx_same(struct name name, const char *text)
{
	return name.length == strlen(text) && memcmp(name.at, text, name.length) == 0;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("_$%", c));
}

static bool is_word(int c)
{
	return is_letter(c) || is_digit(c);
}

/* 0 at the end, and for a byte that no text has. */
static int at(const struct module *m, size_t ahead)
{
	return (size_t)(m->end - m->at) > ahead ? (unsigned char)m->at[ahead] : 0;
}

static void skip_space(struct module *m)
{
	for (;; m->at++) {
		if (at(m, 0) == '/' && at(m, 1) == '/')
			m->at += strcspn(m->at, "\n");
		if (at(m, 0) == '/' && at(m, 1) == '*') {
			uint32_t line = m->line;

			for (m->at += 2; at(m, 0) && (at(m, 0) != '*' || at(m, 1) != '/');
				m->at++)
				m->line += at(m, 0) == '\n';
			if (!at(m, 0)) {
				bad(m, line, "a comment does not end");
				return;
			}
			m->at++;
		} else if (at(m, 0) == ' ' || (at(m, 0) >= '\t' && at(m, 0) <= '\r')) {
			m->line += at(m, 0) == '\n';
		} else {
			return;
		}
	}
}

static void refuse_libdevice(struct module *m, const char *start)
{
	static const char *const starts[] = {"__nv_", "__internal_", "__cudart_i2opi"};
	struct name name = {start, (uint32_t)(m->at - start)};

	for (size_t i = 0; i < SL_ARRAY_LEN(starts); i++)
		if (name.length >= strlen(starts[i]) &&
			!memcmp(start, starts[i], strlen(starts[i])))
			ptx_fail(m, CUDA_ERROR_NO_BINARY_FOR_GPU, m->line,
				"refused: '%.*s' is of NVIDIA's libdevice, whose licence "
				"forbids "
				"translating it for other hardware; link an open "
				"mathematics library",
				NAME(name));
}

/* Words joined by ::, as in shared::cta, are one. */
static void read_word(struct module *m, const char *start)
{
	while (is_word(at(m, 0)) ||
		(at(m, 0) == ':' && at(m, 1) == ':' && is_letter(at(m, 2))))
		m->at += at(m, 0) == ':' ? 2 : 1;
	refuse_libdevice(m, start);
	if (*start == '%' && at(m, 0) == '.' && at(m, 1) >= 'w' && at(m, 1) <= 'z' &&
		!is_word(at(m, 2)))
		m->at += 2;
}

/* A point belongs to a number only before a digit; e and a sign only to a fraction. */
static void read_number(struct module *m)
{
	bool is_fraction = false;

	while (is_word(at(m, 0)) || (at(m, 0) == '.' && is_digit(at(m, 1))) ||
		(is_fraction && (at(m, 0) == '-' || at(m, 0) == '+') &&
			(m->at[-1] | 32) == 'e')) {
		is_fraction |= at(m, 0) == '.';
		m->at++;
	}
}

struct token ptx_next(struct module *m)
{
	struct token t = {.kind = TOK_END};
	const char *start;
	int c;

	skip_space(m);
	t.line = m->line;
	c = at(m, 0);
	if (failed(m) || !c)
		return t;
	start = m->at++;
	t.kind = TOK_CHAR;
	if (c == '.' && is_word(at(m, 0))) {
		t.kind = TOK_DOT;
		read_word(m, ++start);
	} else if (is_digit(c)) {
		t.kind = TOK_NUMBER;
		read_number(m);
	} else if (is_letter(c)) {
		t.kind = TOK_NAME;
		read_word(m, start);
	} else if (c == '"') {
		t.kind = TOK_STRING;
		m->at += strcspn(m->at, "\"\n");
		if (at(m, 0) != '"')
			bad(m, t.line, "a string does not end");
		m->at += at(m, 0) == '"';
	}
	t.name = (struct name){start, (uint32_t)(m->at - start)};
	return t;
}

struct token ptx_peek(struct module *m)
{
	const char *start = m->at;
	uint32_t line = m->line;
	struct token t = ptx_next(m);

	m->at = start;
	m->line = line;
	return t;
}

bool ptx_take(struct module *m, char ch)
{
	struct token t = ptx_peek(m);

	if (t.kind != TOK_CHAR || *t.name.at != ch)
		return false;
	(void)ptx_next(m);
	return true;
}

void ptx_want(struct module *m, char ch)
{
	struct token t = ptx_peek(m);

	if (!ptx_take(m, ch) && t.kind == TOK_END)
		bad(m, t.line, "the text ends where '%c' should stand", ch);
	else if (t.kind != TOK_CHAR || *t.name.at != ch)
		bad(m, t.line, "'%.*s' stands where '%c' should", NAME(t.name), ch);
}

void ptx_skip_to(struct module *m, char ch)
{
	while (!ptx_take(m, ch) && ptx_next(m).kind != TOK_END)
		;
}

static bool read_digits(const char *text, int base, size_t digits, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, base);
	end += base == 0 && *end == 'U';
	return !*end && *text != '-' && (!digits || strlen(text) == digits);
}

void ptx_number(struct module *m, struct name name, struct operand *out)
{
	char text[80] = "", *end;
	double value;
	bool ok;

	memcpy(text, name.at, sl_min_u64(name.length, sizeof(text) - 1));
	out->kind = OP_IMM;
	if (text[0] == '0' && (text[1] | 32) == 'f') {
		out->kind = OP_FLOAT;
		ok = read_digits(text + 2, 16, 8, &out->bits);
	} else if (text[0] == '0' && (text[1] | 32) == 'd') {
		out->kind = OP_DOUBLE;
		ok = read_digits(text + 2, 16, 16, &out->bits);
	} else if (text[0] == '0' && (text[1] | 32) == 'b') {
		ok = read_digits(text + 2, 2, 0, &out->bits);
	} else if (strchr(text, '.')) {
		out->kind = OP_DOUBLE;
		value = strtod(text, &end);
		memcpy(&out->bits, &value, sizeof(value));
		ok = !*end;
	} else {
		ok = read_digits(text, 0, 0, &out->bits);
	}
	if (!ok || name.length >= sizeof(text) || !is_digit(text[0]))
		bad(m, m->line, "'%.*s' is no number", NAME(name));
}

void ptx_fail(struct module *m, CUresult result, uint32_t line, const char *format, ...)
{
	char text[SL_IMAGE_LOG_MAX];
	va_list args;

	if (failed(m))
		return;
	m->result = result;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sl_image_log_set(m->log, "line %u: %s", line, text);
}

void *ptx_grow(struct module *m, void *vector, size_t element_bytes)
{
	static __thread char sink[256];
	VECTOR(char) *v = vector;

	if (v->count == v->allocated && !failed(m)) {
		uint32_t want = v->allocated ? v->allocated * 2 : 16;
		void *more =
			want > 1u << 28 ? NULL : realloc(v->at, want * element_bytes);

		if (more) {
			v->at = more;
			v->allocated = want;
		} else {
			ptx_fail(m, CUDA_ERROR_OUT_OF_MEMORY, m->line, "out of memory");
		}
	}
	if (failed(m) || element_bytes > sizeof(sink))
		return memset(sink, 0, sizeof(sink));
	return memset(v->at + v->count++ * element_bytes, 0, element_bytes);
}

static uint32_t *bucket_of(struct module *m, struct name name, uint32_t key)
{
	uint32_t hash = 2166136261u ^ key * 2654435761u;

	for (uint32_t i = 0; i < name.length; i++)
		hash = (hash ^ (unsigned char)name.at[i]) * 16777619u;
	return &m->bucket[hash % SL_ARRAY_LEN(m->bucket)];
}

static struct symbol *look(struct module *m, struct name name, uint32_t key)
{
	for (uint32_t i = *bucket_of(m, name, key); i; i = m->symbols.at[i - 1].next) {
		struct symbol *s = &m->symbols.at[i - 1];

		if (s->key == key && s->name.length == name.length &&
			!memcmp(s->name.at, name.at, name.length))
			return s;
	}
	return NULL;
}

static struct symbol *add(
	struct module *m, struct name name, uint32_t key, enum symbol_kind kind)
{
	uint32_t *bucket = bucket_of(m, name, key);
	struct symbol *s = ADD(m, &m->symbols);

	*s = (struct symbol){.name = name, .key = key, .kind = kind, .next = *bucket};
	if (!failed(m))
		*bucket = m->symbols.count;
	return s;
}

struct symbol *ptx_declare(struct module *m, struct name name, enum symbol_kind kind)
{
	if (look(m, name, m->scope))
		bad(m, m->line, "'%.*s' is declared twice", NAME(name));
	return add(m, name, m->scope, kind);
}

uint32_t ptx_new_reg(struct module *m, struct function *f, enum ptx_type type)
{
	*ADD(m, &f->regs) = type;
	return f->regs.count - !failed(m);
}

/* Keys of families lie above those of scopes. */
static struct symbol *member(
	struct module *m, struct function *f, struct name name, uint32_t family)
{
	struct symbol *s = look(m, name, ~family);

	if (s)
		return s;
	s = add(m, name, ~family, SYM_REG);
	s->type = m->symbols.at[family].type;
	s->index = ptx_new_reg(m, f, s->type);
	return s;
}

/* The digits at the end of its name are its number, without zeros in front. */
static struct symbol *find_member(
	struct module *m, struct function *f, struct name name, uint32_t scope)
{
	uint64_t number = 0, unit = 1;
	struct name family = name;

	while (f && family.length > 1 && name.length - family.length < 9) {
		char c = name.at[--family.length];
		struct symbol *s;

		if (c < '0' || c > '9')
			break;
		number += unit * (uint64_t)(c - '0');
		unit *= 10;
		s = c == '0' && unit > 10 ? NULL : look(m, family, scope);
		if (s && s->kind == SYM_REGS && number < s->count)
			return member(m, f, name, (uint32_t)(s - m->symbols.at));
	}
	return NULL;
}

struct symbol *ptx_find(
	struct module *m, struct function *f, struct name name, uint32_t scope)
{
	struct symbol *s = NULL;

	for (;; scope = m->parent.at[scope - 1]) {
		s = look(m, name, scope);
		if (!s)
			s = find_member(m, f, name, scope);
		if (s || !scope)
			return s;
	}
}

void ptx_scope_open(struct module *m)
{
	if (++m->depth > 1000)
		bad(m, m->line, "more than 1000 braces are open");
	*ADD(m, &m->parent) = m->scope;
	m->scope = m->parent.count;
}

void ptx_scope_close(struct module *m)
{
	m->depth--;
	m->scope = m->scope ? m->parent.at[m->scope - 1] : 0;
}

enum ptx_type ptx_type_of(struct name word)
{
	for (enum ptx_type t = T_NONE + 1; t < T_COUNT; t++)
		if (ptx_same(word, ptx_types[t].name))
			return t;
	return T_NONE;
}

void ptx_free(struct module *m)
{
	for (uint32_t i = 0; i < m->functions.count; i++) {
		struct function *f = &m->functions.at[i];

		free(f->params.at);
		free(f->regs.at);
		free(f->code.at);
	}
	free(m->symbols.at);
	free(m->parent.at);
	free(m->operands.at);
	free(m->mods.at);
	free(m->names.at);
	free(m->variables.at);
	free(m->values.at);
	free(m->functions.at);
	free(m);
}
