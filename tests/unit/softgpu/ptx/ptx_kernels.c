/*
 * ptx_kernels - whole kernels: memory of all kinds, control, barriers, warps, matrices; and the
 * texts that are refused, and why
 */
#include "ptx.h"

#include "softgpu/ptx/internal.h"

#define START(more)                                                                \
	HEAD more ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"        \
		  "\t.reg .pred %p<9>;\n\t.reg .b16 %h<9>;\n\t.reg .b32 %r<40>;\n" \
		  "\t.reg .f32 %f<9>;\n\t.reg .b64 %d<20>;\n"                      \
		  "\tld.param.u64 %d0, [in];\n\tld.param.u64 %d1, [out];\n"        \
		  "\tmov.u32 %r0, %tid.x;\n\tmul.wide.u32 %d2, %r0, 4;\n"          \
		  "\tadd.u64 %d0, %d0, %d2;\n\tadd.u64 %d1, %d1, %d2;\n"
#define END "\tst.global.u32 [%d1], %r9;\n\tret;\n}\n"

enum { N = 64 };

/* Each thread finds in[tid] in %d0, and its result is in %r9 at the end. */
static const struct row {
	const char *name, *text;
	uint32_t threads, dynamic;
	uint32_t (*want)(uint32_t tid, const uint32_t *in);
} rows[];

static uint32_t reversed(uint32_t t, const uint32_t *in)
{
	return in[N - 1 - t];
}
static uint32_t same(uint32_t t, const uint32_t *in)
{
	return in[t];
}
static uint32_t plus_tid(uint32_t t, const uint32_t *in)
{
	return in[t] + t;
}
static uint32_t total(uint32_t t, const uint32_t *in)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < N; i++)
		sum += in[i];
	return sum;
}
static uint32_t ballot(uint32_t t, const uint32_t *in)
{
	uint32_t v = 0;

	for (uint32_t i = 0; i < 32; i++)
		v |= (in[(t & 32) + i] & 1) << i;
	return v;
}
static uint32_t uniform(uint32_t t, const uint32_t *in)
{
	uint32_t v = ballot(t, in);

	return (v == ~0u) + 2u * (v != 0) + 4u * (v == 0 || v == ~0u);
}
static uint32_t same_lanes(uint32_t t, const uint32_t *in)
{
	uint32_t v = 0;

	for (uint32_t i = 0; i < 32; i++)
		v |= (uint32_t)((in[(t & 32) + i] & 3) == (in[t] & 3)) << i;
	return v;
}
static uint32_t up(uint32_t t, const uint32_t *in)
{
	return (t & 31) >= 3 ? in[t - 3] : in[t] + 1;
}
static uint32_t down(uint32_t t, const uint32_t *in)
{
	return (t & 7) + 2 <= 7 ? in[t + 2] : in[t] + 1;
}
static uint32_t butterfly(uint32_t t, const uint32_t *in)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 32; i++)
		sum += in[(t & 32) + i];
	return sum;
}
static uint32_t from_5(uint32_t t, const uint32_t *in)
{
	return in[(t & ~7u) + 5];
}
static uint32_t warp_max(uint32_t t, const uint32_t *in)
{
	int32_t most = INT32_MIN;

	for (uint32_t i = 0; i < 32; i++)
		most = (int32_t)in[(t & 32) + i] > most ? (int32_t)in[(t & 32) + i]
							: most;
	return (uint32_t)most;
}
static uint32_t looped(uint32_t t, const uint32_t *in)
{
	uint32_t v = in[t];

	for (uint32_t i = 0; i <= t % 7; i++)
		v = v * 3 + i;
	return v;
}
static uint32_t chosen(uint32_t t, const uint32_t *in)
{
	static const uint32_t of[] = {11, 22, 33};

	return of[t % 3];
}
static uint32_t constant(uint32_t t, const uint32_t *in)
{
	return (uint32_t[]){7, 0xfffffffe, 9, 0}[t & 3] + 40;
}
static uint32_t order_of_bytes(uint32_t t, const uint32_t *in)
{
	return (in[t] >> 16 | in[t] << 16) + (uint32_t)(int8_t)in[t] + (in[t] & 0xffff);
}
static uint32_t position(uint32_t t, const uint32_t *in)
{
	return t % 32 + 100 * (t / 32) + 1000 * N;
}
static uint32_t sixteen(uint32_t t, const uint32_t *in)
{
	return t < 16 ? 116 : 0;
}
static uint32_t divided_ways(uint32_t t, const uint32_t *in)
{
	return t & 1 ? in[t] + (in[t - 1] ^ in[t]) : in[t] - (in[t + 1] ^ in[t]);
}

static const struct row rows[] = {
	{"global", START("") "\tld.global.u32 %r9, [%d0];\n" END, N, 0, same},
	{"generic", START("") "\tld.volatile.u32 %r9, [%d0+0];\n" END, N, 0, same},
	{"vectors",
		START("") "\tand.b64 %d3, %d0, -16;\n\tld.global.nc.v4.u32 "
			  "{%r1,%r2,%r3,%r4}, [%d3];\n"
			  "\tsub.u64 %d4, %d0, %d3;\n\tsetp.eq.u64 %p1, %d4, "
			  "0;\n\tsetp.eq.u64 %p2, %d4, 4;\n"
			  "\tsetp.eq.u64 %p3, %d4, 8;\n\tselp.b32 %r9, %r3, %r4, %p3;\n"
			  "\tselp.b32 %r9, %r2, %r9, %p2;\n\tselp.b32 %r9, %r1, %r9, "
			  "%p1;\n" END,
		N, 0, same},
	{"packing",
		START("") "\tld.global.b32 %r1, [%d0];\n\tmov.b32 {%h1, %h2}, %r1;\n"
			  "\tmov.b32 %r2, {%h2, %h1};\n\tld.global.s8 %r3, [%d0];\n"
			  "\tld.global.u16 %r4, [%d0];\n\tadd.u32 %r9, %r2, "
			  "%r3;\n\tadd.u32 %r9, %r9, %r4;\n" END,
		N, 0, order_of_bytes},
	{"shared",
		START("") "\t.shared .align 4 .b8 box[256];\n\tld.global.u32 %r1, "
			  "[%d0];\n\tmov.u64 %d3, box;\n"
			  "\tadd.u64 %d4, %d3, %d2;\n\tst.shared.u32 [%d4], "
			  "%r1;\n\tbar.sync 0;\n"
			  "\tsub.u64 %d5, %d3, %d2;\n\tld.shared.u32 %r9, "
			  "[%d5+252];\n" END,
		N, 0, reversed},
	{"extern shared, generic",
		START(".extern .shared .align 4 .b32 pool[];\n") "\tld.global.u32 %r1, "
								 "[%d0];\n\tmov.u64 %d3, "
								 "pool;\n"
								 "\tcvta.shared.u64 %d3, "
								 "%d3;\n\tadd.u64 %d4, "
								 "%d3, %d2;\n"
								 "\tst.u32 [%d4], "
								 "%r1;\n\tbarrier.sync."
								 "aligned 0;\n"
								 "\tsub.u64 %d5, %d3, "
								 "%d2;\n\tld.u32 %r9, "
								 "[%d5+252];\n" END,
		N, 256, reversed},
	{"local",
		START("") "\t.local .align 8 .b8 own[16];\n\tmov.u64 %d3, "
			  "own;\n\tcvta.local.u64 %d4, %d3;\n"
			  "\tld.global.u32 %r1, [%d0];\n\tst.local.u32 [%d3+4], "
			  "%r1;\n\tst.local.u32 [own+8], %r0;\n"
			  "\tbar.sync 0;\n\tld.u32 %r2, [%d4+4];\n\tld.local.u32 %r3, "
			  "[own+8];\n"
			  "\tadd.u32 %r9, %r2, %r3;\n" END,
		N, 0, plus_tid},
	{"constants",
		START(".const .align 4 .u32 table[4] = {7, -2, 0x9};\n.global .u32 forty "
		      "= 40;\n") "\tand.b32 %r1, %r0, 3;\n\tmul.wide.u32 %d3, %r1, "
				 "4;\n\tmov.u64 %d4, table;\n"
				 "\tadd.u64 %d4, %d4, %d3;\n\tld.const.u32 %r2, "
				 "[%d4];\n\tld.global.u32 %r3, [forty];\n"
				 "\tadd.u32 %r9, %r2, %r3;\n" END,
		N, 0, constant},
	{"atomics",
		START(".global .u32 sum;\n") "\tld.global.u32 %r1, [%d0];\n\tmov.u64 "
					     "%d3, sum;\n"
					     "\tred.global.add.u32 [%d3], "
					     "%r1;\n\tbar.sync 0;\n"
					     "\tatom.relaxed.gpu.global.or.b32 %r9, "
					     "[%d3], 0;\n" END,
		N, 0, total},
	{"atomics of floats",
		START(".global .f32 sum;\n") "\tld.global.u32 %r1, [%d0];\n\tmov.u64 "
					     "%d3, sum;\n"
					     "\tand.b32 %r2, %r1, 1023;\n\tsub.u32 %r3, "
					     "%r1, %r2;\n\tmov.f32 %f1, 0f3F800000;\n"
					     "\tatom.global.add.f32 %f2, [%d3], "
					     "%f1;\n\tbar.sync 0;\n\tld.global.f32 %f3, "
					     "[%d3];\n"
					     "\tcvt.rzi.u32.f32 %r4, %f3;\n\tsub.u32 "
					     "%r4, %r4, 64;\n"
					     "\tadd.u32 %r9, %r2, %r3;\n\tadd.u32 %r9, "
					     "%r9, %r4;\n" END,
		N, 0, same},
	{"compare and swap",
		START(".global .u32 lock;\n") "\tld.global.u32 %r1, [%d0];\n\tmov.u64 "
					      "%d3, "
					      "lock;\nagain:\n\tld.relaxed.gpu.global."
					      "u32 %r2, [%d3];\n"
					      "\tadd.u32 %r3, %r2, "
					      "%r1;\n\tatom.global.cas.b32 %r4, [%d3], "
					      "%r2, %r3;\n"
					      "\tsetp.ne.u32 %p1, %r4, %r2;\n\t@%p1 bra "
					      "again;\n\tbar.sync 0;\n\tld.global.u32 "
					      "%r9, [%d3];\n" END,
		N, 0, total},
	{"loop",
		START("") "\tld.global.u32 %r9, [%d0];\n\trem.u32 %r1, %r0, "
			  "7;\n\tmov.u32 %r2, 0;\n$L:\n"
			  "\tmad.lo.u32 %r9, %r9, 3, %r2;\n\tadd.u32 %r2, %r2, "
			  "1;\n\tsetp.le.u32 %p1, %r2, %r1;\n"
			  "\t@%p1 bra.uni $L;\n" END,
		N, 0, looped},
	{"loop with a barrier",
		START("") "\tld.global.u32 %r9, [%d0];\n\trem.u32 %r1, %r0, "
			  "7;\n\tmov.u32 %r2, 0;\n$L:\n"
			  "\tsetp.le.u32 %p1, %r2, %r1;\n\t@%p1 mad.lo.u32 %r9, %r9, 3, "
			  "%r2;\n\tbar.sync 1;\n"
			  "\tadd.u32 %r2, %r2, 1;\n\tsetp.lt.u32 %p2, %r2, 9;\n\t@%p2 "
			  "bra $L;\n" END,
		N, 0, looped},
	{"table of labels",
		START("") "\trem.u32 %r1, %r0, 3;\n$T: .branchtargets $A, $B, "
			  "$C;\n\tbrx.idx %r1, $T;\n"
			  "$A:\n\tmov.u32 %r9, 11;\n\tbra $E;\n$B:\n\tmov.u32 %r9, "
			  "22;\n\tbra $E;\n"
			  "$C:\n\tmov.u32 %r9, 33;\n$E:\n" END,
		N, 0, chosen},
	{"scopes",
		START("") "\tld.global.u32 %r1, [%d0];\n\t{\n\t.reg .b32 %r1;\n\tmov.u32 "
			  "%r1, 5;\nL:\n\t}\n"
			  "\t{\n\t.reg .b32 x;\nL:\n\tmov.u32 x, %r1;\n\tmov.u32 %r9, "
			  "x;\n\t}\n" END,
		N, 0, same},
	{"votes",
		START("") "\tld.global.u32 %r1, [%d0];\n\tand.b32 %r2, %r1, "
			  "1;\n\tsetp.ne.u32 %p1, %r2, 0;\n"
			  "\tvote.sync.all.pred %p2, %p1, -1;\n\tvote.sync.any.pred %p3, "
			  "%p1, -1;\n"
			  "\tvote.sync.uni.pred %p4, %p1, 0xffffffff;\n\tselp.b32 %r9, "
			  "1, 0, %p2;\n"
			  "\t@%p3 add.u32 %r9, %r9, 2;\n\t@%p4 add.u32 %r9, %r9, "
			  "4;\n" END,
		N, 0, uniform},
	{"ballot",
		START("") "\tld.global.u32 %r1, [%d0];\n\tand.b32 %r2, %r1, "
			  "1;\n\tsetp.ne.u32 %p1, %r2, 0;\n"
			  "\tvote.sync.ballot.b32 %r9, %p1, -1;\n\tactivemask.b32 "
			  "%r3;\n\tmov.u32 %r4, %lanemask_eq;\n\txor.b32 %r3, %r3, "
			  "%r4;\n\tor.b32 %r9, %r9, %r3;\n" END,
		N, 0, ballot},
	{"match",
		START("") "\tld.global.u32 %r1, [%d0];\n\tand.b32 %r2, %r1, "
			  "3;\n\tmatch.any.sync.b32 %r9, %r2, -1;\n"
			  "\tmatch.all.sync.b32 %r3|%p1, %r2, -1;\n\t@%p1 mov.u32 %r9, "
			  "0;\n" END,
		N, 0, same_lanes},
	{"shuffle up",
		START("") "\tld.global.u32 %r1, [%d0];\n\tshfl.sync.up.b32 %r9|%p1, %r1, "
			  "3, 0, -1;\n"
			  "\t@!%p1 add.u32 %r9, %r9, 1;\n" END,
		N, 0, up},
	{"shuffle down",
		START("") "\tld.global.u32 %r1, [%d0];\n\tshfl.sync.down.b32 %r9|%p1, "
			  "%r1, 2, 0x1807, -1;\n"
			  "\t@!%p1 add.u32 %r9, %r9, 1;\n" END,
		N, 0, down},
	{"shuffle across",
		START("") "\tld.global.u32 %r9, [%d0];\n\tmov.u32 %r2, 16;\nL:\n"
			  "\tshfl.sync.bfly.b32 %r1, %r9, %r2, 31, -1;\n\tadd.u32 %r9, "
			  "%r9, %r1;\n"
			  "\tshr.u32 %r2, %r2, 1;\n\tsetp.ne.u32 %p1, %r2, 0;\n\t@%p1 "
			  "bra L;\n" END,
		N, 0, butterfly},
	{"shuffle from one",
		START("") "\tld.global.u32 %r1, [%d0];\n\tshfl.sync.idx.b32 %r9, %r1, 5, "
			  "0x181f, -1;\n" END,
		N, 0, from_5},
	{"shuffle in branches",
		START("") "\tld.global.u32 %r9, [%d0];\n\tand.b32 %r1, %r0, "
			  "1;\n\tsetp.ne.u32 %p1, %r1, 0;\n"
			  "\tshfl.sync.bfly.b32 %r2, %r9, 1, 31, -1;\n\txor.b32 %r3, "
			  "%r2, %r9;\n\t@%p1 bra ODD;\n"
			  "\tredux.sync.and.b32 %r5, %r0, 0x55555555;\n\tsub.u32 %r9, "
			  "%r9, %r3;\n\tbra OUT;\nODD:\n"
			  "\tadd.u32 %r9, %r9, %r3;\n\tredux.sync.or.b32 %r4, %r9, "
			  "0xaaaaaaaa;\nOUT:\n\tbar.warp.sync -1;\n" END,
		N, 0, divided_ways},
	{"redux",
		START("") "\tld.global.u32 %r1, [%d0];\n\tredux.sync.max.s32 %r9, %r1, "
			  "-1;\n" END,
		N, 0, warp_max},
	{"barrier for some",
		START(".shared .u32 word;\n") "\tmov.u32 %r9, 0;\n\tsetp.lt.u32 %p1, "
					      "%r0, 16;\n\t@!%p1 bra REST;\n"
					      "\tbar.sync 1, 32;\n\tld.shared.u32 %r9, "
					      "[word];\n\tbra OUT;\nREST:\n"
					      "\tsetp.ge.u32 %p2, %r0, 32;\n\t@%p2 bra "
					      "OUT;\n\tmov.u32 %r1, 116;\n"
					      "\tst.shared.u32 [word], "
					      "%r1;\n\tbar.arrive 1, 32;\nOUT:\n" END,
		N, 0, sixteen},
	{"threads that end early",
		START("") "\tld.global.u32 %r9, [%d0];\n\tst.global.u32 [%d1], "
			  "%r9;\n\tand.b32 %r1, %r0, 1;\n"
			  "\tsetp.eq.u32 %p1, %r1, 0;\n\t@%p1 exit;\n\tbar.sync 0;\n"
			  "\tvote.sync.ballot.b32 %r2, %p1, -1;\n" END,
		N, 0, same},
	{"places",
		START("") "\tmov.u32 %r1, %warpid;\n\tmov.u32 %r2, %laneid;\n\tmov.u32 "
			  "%r3, %ntid.x;\n"
			  "\tmad.lo.u32 %r9, %r1, 100, %r2;\n\tmad.lo.u32 %r9, %r3, "
			  "1000, %r9;\n" END,
		N, 0, position},
};

static void test_rows(void **state)
{
	uint32_t in[N] __attribute__((aligned(16))), out[N];
	uint32_t *in_at = in, *out_at = out;
	void *params[] = {&in_at, &out_at};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct sl_host_module *m = ptx_load(rows[i].text);
		char *variables = aligned_alloc(256, 4096);

		for (uint32_t k = 0; k < N; k++)
			in[k] = k * 2654435761u + 12345;
		memset(out, 0xa5, sizeof(out));
		memset(variables, 0, 4096);
		for (unsigned k = 0; m->globals + k < m->globals_end; k++)
			*m->globals[k]->where = variables + k * 256;
		for (unsigned k = 0; m->globals + k < m->globals_end; k++)
			m->globals[k]->fill();
		ptx_run(ptx_kernel(m, "k"), 1, rows[i].threads, 1, rows[i].dynamic,
			params);
		for (uint32_t k = 0; k < rows[i].threads; k++)
			assert_row_u64(rows[i].name, out[k], rows[i].want(k, in));
		free(variables);
	}
}

/* Matrices ------------------------------------------------------------------------------------ */

static uint16_t make_half(int v) /* v sixteenths */
{
	uint16_t sign = v < 0 ? 0x8000 : 0;
	int m = v < 0 ? -v : v, exponent = 11;

	if (!m)
		return 0;
	for (; m < 1024; exponent--)
		m *= 2;
	return (uint16_t)(sign | (exponent + 10) << 10 | (m & 1023));
}

/* 16 x 16 times 16 x 8: fragments as the ISA lays them out over the lanes. */
static void test_mma(void **state)
{
	const struct sl_host_module *m = ptx_load(
		HEAD ".entry k(.param .u64 in, .param .u64 out)\n{\n\t.reg .b32 "
		     "%r<9>;\n\t.reg .f32 %f<9>;\n\t.reg .b64 %d<9>;\n"
		     "\tld.param.u64 %d0, [in];\n\tld.param.u64 %d1, [out];\n\tmov.u32 "
		     "%r7, %laneid;\n"
		     "\tmul.wide.u32 %d2, %r7, 32;\n\tadd.u64 %d0, %d0, "
		     "%d2;\n\tmul.wide.u32 %d2, %r7, 16;\n\tadd.u64 %d1, %d1, %d2;\n"
		     "\tld.global.v4.u32 {%r0,%r1,%r2,%r3}, [%d0];\n\tld.global.v2.u32 "
		     "{%r4,%r5}, [%d0+16];\n"
		     "\tmov.f32 %f0, 0f3F800000;\n\tmov.f32 %f1, 0f40000000;\n\tmov.f32 "
		     "%f2, 0f40400000;\n\tmov.f32 %f3, 0f40800000;\n"
		     "\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
		     "{%f4,%f5,%f6,%f7}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, "
		     "{%f0,%f1,%f2,%f3};\n\tst.global.v4.f32 [%d1], "
		     "{%f4,%f5,%f6,%f7};\n\tret;\n}\n");
	int a[16][16], b[16][8];
	uint32_t in[32][8] __attribute__((aligned(16))) = {{0}};
	float out[32][4] __attribute__((aligned(16)));
	void *in_at = in, *out_at = out, *params[] = {&in_at, &out_at};

	(void)state;
	for (int i = 0; i < 16; i++)
		for (int k = 0; k < 16; k++) {
			a[i][k] = (i * 7 + k * 3) % 37 - 18;
			b[i][k / 2] = (i * 5 + k * 11) % 29 - 14;
		}
	for (unsigned lane = 0; lane < 32; lane++)
		for (unsigned h = 0; h < 2; h++) {
			unsigned g = lane / 4, t = lane % 4 * 2 + h;

			in[lane][0] |= (uint32_t)make_half(a[g][t]) << h * 16;
			in[lane][1] |= (uint32_t)make_half(a[g + 8][t]) << h * 16;
			in[lane][2] |= (uint32_t)make_half(a[g][t + 8]) << h * 16;
			in[lane][3] |= (uint32_t)make_half(a[g + 8][t + 8]) << h * 16;
			in[lane][4] |= (uint32_t)make_half(b[t][g]) << h * 16;
			in[lane][5] |= (uint32_t)make_half(b[t + 8][g]) << h * 16;
		}
	ptx_run(ptx_kernel(m, "k"), 1, 32, 1, 0, params);
	for (unsigned lane = 0; lane < 32; lane++)
		for (unsigned i = 0; i < 4; i++) {
			unsigned row = lane / 4 + i / 2 * 8,
				 column = lane % 4 * 2 + i % 2;
			int want = 0;

			for (unsigned k = 0; k < 16; k++)
				want += a[row][k] * b[k][column];
			assert_true(out[lane][i] == (float)want / 256 + (float)(i + 1));
		}
}

/* Texts that are not taken -------------------------------------------------------------------- */

#define KERNEL(body)                                                                     \
	HEAD ".entry k(.param .u64 a)\n{\n\t.reg .b32 %r<4>;\n\t.reg .f32 %f<4>;\n" body \
	     "\tret;\n}\n"

static const struct bad_row {
	const char *name, *text;
	CUresult result;
	const char *says;
} bad_rows[] = {
	{"nothing", "", CUDA_ERROR_INVALID_PTX, "starts with .version"},
	{"no version", ".target sm_80\n", CUDA_ERROR_INVALID_PTX,
		"line 1: PTX starts with .version"},
	{"newer", ".version 99.0\n", CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
		"newer than this driver"},
	{"newer GPU", ".version 8.0\n.target sm_90\n", CUDA_ERROR_INVALID_PTX,
		"sm_90 is newer"},
	{"short addresses", ".version 7.0\n.target sm_80\n.address_size 32\n",
		CUDA_ERROR_INVALID_PTX, "64 bits"},
	{"opcode", KERNEL("\tfrobnicate.u32 %r1, %r2;\n"), CUDA_ERROR_INVALID_PTX,
		"line 9: instruction 'frobnicate.u32' is not known"},
	{"modifier", KERNEL("\tadd.wide.u32 %r1, %r2, %r3;\n"), CUDA_ERROR_INVALID_PTX,
		"'add.wide.u32'"},
	{"type", KERNEL("\tadd.u8 %r1, %r2, %r3;\n"), CUDA_ERROR_INVALID_PTX, "'add.u8'"},
	{"operands", KERNEL("\tadd.u32 %r1, %r2;\n"), CUDA_ERROR_INVALID_PTX,
		"2 operands instead of 3"},
	{"register", KERNEL("\tadd.u32 %r1, %r2, %r4;\n"), CUDA_ERROR_INVALID_PTX,
		"'%r4' is not declared"},
	{"width", KERNEL("\tadd.u64 %r1, %r2, %r3;\n"), CUDA_ERROR_INVALID_PTX,
		".b32 where .u64"},
	{"constant", KERNEL("\tadd.f32 %f1, %f2, 1;\n"), CUDA_ERROR_INVALID_PTX,
		"no value of type .f32"},
	{"label", KERNEL("\tbra L;\n"), CUDA_ERROR_INVALID_PTX, "line 9: label 'L'"},
	{"label twice", KERNEL("L:\nL:\n"), CUDA_ERROR_INVALID_PTX,
		"'L' is declared twice"},
	{"guard", KERNEL("\t@%r1 ret;\n"), CUDA_ERROR_INVALID_PTX,
		"guard is no predicate"},
	{"variable", KERNEL("\tmov.u32 %r1, nothing;\n"), CUDA_ERROR_INVALID_PTX,
		"'nothing' is not declared"},
	{"parameter", KERNEL("\tld.param.u32 %r1, [a+8];\n"), CUDA_ERROR_INVALID_PTX,
		"'a' is shorter than 8 + 4"},
	{"number", KERNEL("\tmov.u32 %r1, 0x12g;\n"), CUDA_ERROR_INVALID_PTX,
		"'0x12g' is no number"},
	{"function", HEAD ".func f()\n{\n\tret;\n}\n", CUDA_ERROR_INVALID_PTX, "inline"},
	{"shared",
		HEAD ".entry k()\n{\n\t.shared .b8 x[50000];\n\t.reg .u64 %d;\n\tmov.u64 "
		     "%d, x;\n}\n",
		CUDA_ERROR_INVALID_PTX, "bytes of shared memory"},
	{"constants", HEAD ".const .b8 x[70000];\n", CUDA_ERROR_INVALID_PTX,
		"bytes of .const"},
	{"values", HEAD ".global .u8 x[2] = {1, 2, 3};\n", CUDA_ERROR_INVALID_PTX,
		"more values"},
	{"size", HEAD ".global .u8 x[99999999999][99999999999];\n",
		CUDA_ERROR_INVALID_PTX, "too large"},
	{"end in a kernel", HEAD ".entry k()\n{\n\tret;\n", CUDA_ERROR_INVALID_PTX,
		"ends inside function 'k'"},
	{"end in a comment", HEAD "/* and so on", CUDA_ERROR_INVALID_PTX,
		"comment does not end"},
	{"control characters", HEAD ".entry \x1b[31mk()\n", CUDA_ERROR_INVALID_PTX,
		"line 5"},
	{"text of NVVM", "//\n// Generated by NVIDIA NVVM Compiler\n//\n.version 7.0\n",
		CUDA_ERROR_NO_BINARY_FOR_GPU,
		"refused: the text was made by NVIDIA's compilers"},
	{"text of nvcc", "// Cuda compilation tools, release 12.4\n.version 7.0\n",
		CUDA_ERROR_NO_BINARY_FOR_GPU, "Cuda compilation tools"},
	{"libdevice",
		HEAD ".func (.param .b32 r) __nv_sinf(.param .b32 x)\n{\n\tret;\n}\n",
		CUDA_ERROR_NO_BINARY_FOR_GPU,
		"refused: '__nv_sinf' is of NVIDIA's libdevice"},
	{"libdevice's tables", HEAD ".global .align 4 .b8 __cudart_i2opi_f[24];\n",
		CUDA_ERROR_NO_BINARY_FOR_GPU, "refused: '__cudart_i2opi_f'"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(bad_rows); i++) {
		struct sl_image_log log;
		char *c;

		assert_row_u64(bad_rows[i].name,
			sl_ptx_translate(bad_rows[i].text, 12040, &c, &log),
			bad_rows[i].result);
		assert_row_contains(bad_rows[i].name, log.text, bad_rows[i].says);
		assert_null(strchr(log.text, '\x1b'));
		assert_null(c);
	}
}

/* A text cut anywhere says so, and leaves nothing behind. */
static void test_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		for (size_t n = 0; n + 3 < strlen(rows[i].text); n += 7) {
			char *text = strndup(rows[i].text, n), *c;
			struct sl_image_log log;
			CUresult r = sl_ptx_translate(text, 12040, &c, &log);

			if (r == CUDA_SUCCESS)
				assert_true(n < strlen(HEAD) + 80 && c);
			else
				assert_true(log.text[0] && !c);
			free(c);
			free(text);
		}
}

static char *repeated(
	const char *before, const char *part, size_t count, const char *after)
{
	char *text = malloc(strlen(before) + strlen(part) * count + strlen(after) + 1),
	     *at;

	at = stpcpy(text, before);
	for (size_t i = 0; i < count; i++)
		at = stpcpy(at, part);
	strcpy(at, after);
	return text;
}

static void test_huge(void **state)
{
	static const struct {
		const char *name, *before, *part, *after;
		size_t count;
		CUresult result;
	} huge[] = {
		{"braces", KERNEL(""), "", "", 0, CUDA_SUCCESS},
		{"deep braces", HEAD ".entry k()\n{\n", "{", "", 100000,
			CUDA_ERROR_INVALID_PTX},
		{"deep lists", HEAD ".entry k()\n{\n\tmov.b32 ", "{", "", 100000,
			CUDA_ERROR_INVALID_PTX},
		{"deep values", HEAD ".global .u8 x[9] = ", "{", "", 100000,
			CUDA_ERROR_INVALID_PTX},
		{"a long name", HEAD ".entry ", "k", "()\n{\n}\n", 100000,
			CUDA_ERROR_INVALID_PTX},
		{"many signs", HEAD ".entry k()\n{\n\tbra ", "!", ";\n}\n", 100000,
			CUDA_ERROR_INVALID_PTX},
		{"many modifiers", HEAD ".entry k()\n{\n\tadd", ".u32", ";\n}\n", 100000,
			CUDA_ERROR_INVALID_PTX},
		{"many instructions", HEAD ".entry k()\n{\n", "\tret;\n", "}\n", 100000,
			CUDA_SUCCESS},
		{"many families", HEAD ".entry k()\n{\n\t.reg .b32 ", "%r<999999999>, ",
			"%x;\n}\n", 1, CUDA_SUCCESS},
		{"too long", HEAD, "          \n", "", 1600000, CUDA_ERROR_INVALID_PTX},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(huge); i++) {
		char *text = repeated(
			     huge[i].before, huge[i].part, huge[i].count, huge[i].after),
		     *c;
		struct sl_image_log log;

		assert_row_u64(huge[i].name, sl_ptx_translate(text, 12040, &c, &log),
			huge[i].result);
		free(c);
		free(text);
	}
}

static void test_kind(void **state)
{
	static const unsigned char fatbin[20] = {0x50, 0xed, 0x55, 0xba},
				   cubin[20] = {0x7f, 'E', 'L', 'F', [18] = 190};
	struct sl_image_log log = {""};

	(void)state;
	assert_true(sl_image_is_ptx(" \n\t.version 7.0"));
	assert_true(sl_image_is_ptx("\n// made by hand"));
	assert_false(sl_image_is_ptx("hello"));
	assert_false(sl_image_is_ptx(""));
	assert_int_equal(sl_image_refuse(fatbin, &log), CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_non_null(strstr(log.text, "refused: a fatbin"));
	assert_int_equal(sl_image_refuse(cubin, &log), CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_non_null(strstr(log.text, "refused: a cubin"));
	assert_int_equal(sl_image_refuse("an ordinary text here", &log), CUDA_SUCCESS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_mma),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_huge),
		cmocka_unit_test(test_kind),
	};

	setenv("XDG_CACHE_HOME", "/proc/nowhere", 1); /* nothing is kept of these */

	return cmocka_run_group_tests(tests, NULL, NULL);
}
