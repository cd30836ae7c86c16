/*
 * internal - the form of PTX between text and C
 *
 * A module is symbols and functions; a function is registers and instructions. Names are resolved
 * while the text is read, labels later. All data are in growing arrays and freed with the module.
 * The first error is stored (bad), and from then on the text seems to have ended, so only loops
 * must check for errors.
 */
#ifndef SL_SOFTGPU_PTX_INTERNAL_H
#define SL_SOFTGPU_PTX_INTERNAL_H

#include "softgpu/ptx/ptx.h"

#include <stdio.h>

enum ptx_type {
	T_NONE,
#define TYPE(name, bytes, kind) T_##name,
#include "softgpu/ptx/types.def"
#undef TYPE
	T_COUNT
};
struct type_info {
	const char *name;
	unsigned bytes;
	char kind;
};
extern const struct type_info ptx_types[T_COUNT];

struct name {
	const char *at; /* in the text */
	uint32_t length;
};
#define NAME(n) (int)sl_min_u64((n).length, 200), (n).at /* for "%.*s" */

/* In this order: a register; a family of registers below count; .global and .const; .shared, with
 * an offset in the function that placed it; extern shared; .local; .param; a kernel; a list of
 * labels; one label. */
enum symbol_kind {
	SYM_REG,
	SYM_REGS,
	SYM_GLOBAL,
	SYM_SHARED,
	SYM_DYNAMIC,
	SYM_LOCAL,
	SYM_PARAM,
	SYM_FUNCTION,
	SYM_TARGETS,
	SYM_LABEL
};
struct symbol {
	struct name name;
	enum symbol_kind kind;
	enum ptx_type type;
	uint32_t index, count, align;
	uint32_t key;       /* the scope, or the family of a register */
	uint32_t placed_in; /* 1 + function */
	uint32_t next;      /* in its bucket, 1 + index; 0: none */
	uint64_t bytes, offset;
};

/* In this order: _; a register; a number, a float's or a double's bits; an address; a special
 * register; a label or an undeclared name; a list: {a, b}, (a, b) or a|b. */
enum operand_kind {
	OP_NONE,
	OP_REG,
	OP_IMM,
	OP_FLOAT,
	OP_DOUBLE,
	OP_SYMBOL,
	OP_SPECIAL,
	OP_NAME,
	OP_LIST
};
struct operand {
	enum operand_kind kind;
	bool is_memory; /* in brackets */
	bool negated;
	uint32_t index, count;
	int64_t offset;
	uint64_t bits;
	struct name name;
};
#define OPERANDS_MAX 16u

struct mod {
	struct name name;
	enum ptx_type type; /* T_NONE: no type */
};
struct instruction {
	uint32_t line, scope, first_mod, mod_count, first_arg, arg_count;
	bool is_label; /* op: its name */
	struct name op;
	int32_t guard; /* register, or -1 */
	bool guard_negated;
	const struct mod *mod; /* these three after all of the text has been read */
	const struct operand *arg;
	const struct form *form;
};

#define VECTOR(type)                       \
	struct {                           \
		type *at;                  \
		uint32_t count, allocated; \
	}
struct variable {
	struct name name;
	enum ptx_type type;
	uint64_t bytes;
	uint32_t first_value, value_count;
};
struct parameter {
	uint64_t bytes;
	uint32_t align;
};
struct function {
	struct name name;
	uint32_t line, index, max_threads;
	bool waits; /* it waits for other threads */
	VECTOR(struct parameter) params;
	VECTOR(enum ptx_type) regs;
	VECTOR(struct instruction) code;
	uint64_t shared_bytes, local_bytes;
};
struct module {
	const char *at, *end;
	uint32_t line, depth, scope;
	CUresult result; /* of the first error */
	struct sl_image_log *log;
	int driver_version;
	uint32_t bucket[16384]; /* 1 + index of a symbol */
	VECTOR(struct symbol) symbols;
	VECTOR(uint32_t) parent; /* of each scope */
	VECTOR(struct operand) operands;
	VECTOR(struct mod) mods;
	VECTOR(struct name) names;
	VECTOR(struct variable) variables;
	VECTOR(uint64_t) values;
	VECTOR(struct function) functions;
	uint64_t const_bytes;
	FILE *out;
};

/* One more element, zeroed; after an error a dummy. */
void *ptx_grow(struct module *m, void *vector, size_t element_bytes);
#define ADD(m, v) ((__typeof__((v)->at))ptx_grow(m, v, sizeof(*(v)->at)))

/* Keeps the first error only. */
void ptx_fail(struct module *m, CUresult result, uint32_t line, const char *format, ...)
	SL_PRINTF(4, 5);
#define bad(m, line, ...) ptx_fail(m, CUDA_ERROR_INVALID_PTX, line, __VA_ARGS__)
#define say(m, ...)       fprintf((m)->out, __VA_ARGS__)

static inline bool failed(const struct module *m)
{
	return m->result != CUDA_SUCCESS;
}

/* text.c; declarations go into the open scope. */
enum token_kind { TOK_END, TOK_NAME, TOK_DOT, TOK_NUMBER, TOK_STRING, TOK_CHAR };
struct token {
	enum token_kind kind;
	struct name name; /* of a dotted word without the dot */
	uint32_t line;
};
bool ptx_same(struct name name, const char *text);
struct token ptx_next(struct module *m);
struct token ptx_peek(struct module *m);
bool ptx_take(struct module *m, char ch); /* true if it comes next */
void ptx_want(struct module *m, char ch);
void ptx_skip_to(struct module *m, char ch);
void ptx_number(struct module *m, struct name text, struct operand *out);
struct symbol *ptx_declare(struct module *m, struct name name, enum symbol_kind kind);
/* NULL: not in scope. A register of a family is made at first use. */
struct symbol *ptx_find(
	struct module *m, struct function *f, struct name name, uint32_t scope);
void ptx_scope_open(struct module *m);
void ptx_scope_close(struct module *m);
enum ptx_type ptx_type_of(struct name word);
uint32_t ptx_new_reg(struct module *m, struct function *f, enum ptx_type type);
void ptx_free(struct module *m);
void ptx_parse(struct module *m); /* parse.c */

/* form.c: the forms of forms.def. */
enum form_kind { FORM_VALUE, FORM_WARP, FORM_ATOM, FORM_OTHER };
typedef void ptx_emitter(struct module *m, struct function *f, struct instruction *in);
struct form {
	const char *op;
	enum form_kind kind;
	const char *required, *optional, *types, *sources, *signature, *expr;
	const char *put, *mask;     /* what a lane of the mask hands in first */
	uint32_t least, most;       /* operands of FORM_OTHER */
	ptx_emitter *emit, *finish; /* finish: behind a wait */
};
const struct form *ptx_form(struct module *m, const struct instruction *in);
const struct form *ptx_form_at(size_t i);            /* NULL behind the last */
bool ptx_among(struct name word, const char *words); /* is it one of those words? */
bool ptx_has(const struct instruction *in, const char *mod);
enum ptx_type ptx_nth_type(const struct instruction *in, unsigned n);

/* operand.c: operands as C. A list's n-th, or the operand itself. */
int32_t ptx_special(struct name name);
const struct operand *ptx_child(struct module *m, const struct operand *o, uint32_t n);
uint32_t ptx_width(const struct operand *o);
void ptx_read(struct module *m, struct function *f, const struct instruction *in,
	const struct operand *o, enum ptx_type type);
void ptx_write(struct module *m, struct function *f, const struct instruction *in,
	const struct operand *o, enum ptx_type type, const char *value);
void ptx_address(struct module *m, struct function *f, const struct instruction *in,
	const struct operand *o, unsigned bytes);

/* operand.c, emit.c */
ptx_emitter ptx_emit_value, ptx_emit_atom, ptx_hand_in, ptx_take_out, ptx_emit_text,
	ptx_emit_mov, ptx_emit_ld, ptx_emit_st, ptx_emit_bra, ptx_emit_brx,
	ptx_emit_arrive, ptx_emit_bar, ptx_emit_mma, ptx_finish_mma;

#endif
