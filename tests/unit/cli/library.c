/* Where libsluice.so is looked for, and what LD_PRELOAD becomes. */
#include "../base/test.h"

#include "base/elffile.h"
#include "base/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
	const char *row, *old, *want;
} rows[] = {
	{"unset", NULL, "/l/libsluice.so"},
	{"empty", "", "/l/libsluice.so"},
	{"kept behind", "/a.so", "/l/libsluice.so:/a.so"},
	{"blanks and colons",
		" /a.so  /b.so:/c.so:", "/l/libsluice.so:/a.so:/b.so:/c.so"},
	{"run inside run", "/l/libsluice.so:/a.so", "/l/libsluice.so:/a.so"},
	{"another build's", "/other/libsluice.so /a.so", "/l/libsluice.so:/a.so"},
	{"bare name", "libsluice.so", "/l/libsluice.so"},
	{"not ours", "/x/notlibsluice.so", "/l/libsluice.so:/x/notlibsluice.so"},
};

static void test_preload(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char *value = sl_library_preload("/l/libsluice.so", rows[i].old);

		assert_row_text(rows[i].row, value, rows[i].want);
		free(value);
	}
}

struct made {
	Elf64_Ehdr head;
	Elf64_Phdr rows[2];
	Elf64_Dyn dynamic[5];
	Elf64_Verneed file;
	Elf64_Vernaux versions[2];
	char strings[64];
};

/* Offsets into the strings below. */
enum { AT_SONAME = 1, AT_NEW = 14, AT_OLD = 25, AT_DEFINED = 36 };

/* A library by its headers alone: it needs GLIBC_2.3 and 2.17, and has the text of 2.34 in it. */
static struct made make_library(void)
{
	static const char strings[] =
		"\0libsluice.so\0GLIBC_2.17\0GLIBC_2.3\0\0GLIBC_2.34";
	struct made m = {.head = {.e_type = ET_DYN,
				 .e_machine = SL_ELF_MACHINE,
				 .e_phoff = offsetof(struct made, rows),
				 .e_phentsize = sizeof(Elf64_Phdr),
				 .e_phnum = 2},
		.rows = {{.p_type = PT_LOAD, .p_vaddr = 0x1000, .p_filesz = sizeof(m)},
			{.p_type = PT_DYNAMIC,
				.p_offset = offsetof(struct made, dynamic)}},
		.dynamic = {{DT_SONAME, {AT_SONAME}},
			{DT_STRTAB, {0x1000 + offsetof(struct made, strings)}},
			{DT_STRSZ, {sizeof(m.strings)}},
			{DT_VERNEED, {0x1000 + offsetof(struct made, file)}},
			{DT_NULL, {0}}},
		.file = {.vn_cnt = 2, .vn_aux = sizeof(m.file)},
		.versions = {{.vna_name = AT_OLD, .vna_next = sizeof(m.versions[0])},
			{.vna_name = AT_NEW}}};

	memcpy(m.head.e_ident, ELFMAG, SELFMAG);
	m.head.e_ident[EI_CLASS] = ELFCLASS64;
	memcpy(m.strings, strings, sizeof(strings));
	return m;
}

static void put(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
}

/* One thing wrong at a time. */
#define DAMAGES(X)                                                           \
	X(well, OK, (void)m)                                                 \
	X(no_magic, NONE, m->head.e_ident[1] = 'e')                          \
	X(bits32, FOREIGN, m->head.e_ident[EI_CLASS] = ELFCLASS32)           \
	X(machine, FOREIGN, m->head.e_machine = EM_S390)                     \
	X(program, NO_LIBRARY, m->head.e_type = ET_EXEC)                     \
	X(headers_elsewhere, DAMAGED, m->head.e_phoff = UINT64_MAX)          \
	X(no_dynamic, DAMAGED, m->rows[1].p_type = PT_NOTE)                  \
	X(dynamic_elsewhere, DAMAGED, m->rows[1].p_offset = UINT64_MAX - 7)  \
	X(name_elsewhere, DAMAGED, m->dynamic[0].d_un.d_val = 64)            \
	X(name_endless, DAMAGED, memset(m->strings, 'a', 64))                \
	X(strings_elsewhere, DAMAGED, m->dynamic[1].d_un.d_ptr = 1)          \
	X(strings_too_long, DAMAGED, m->dynamic[2].d_un.d_val = UINT64_MAX)  \
	X(load_wraps, DAMAGED, m->rows[0].p_offset = UINT64_MAX - 200)       \
	X(needs_elsewhere, DAMAGED, m->dynamic[3].d_un.d_ptr = UINT64_MAX)   \
	X(needs_far_off, DAMAGED, m->versions[1].vna_next = (Elf64_Word)-16) \
	X(version_elsewhere, DAMAGED, m->versions[0].vna_name = 1000)

#define MAKER(row, outcome, ...)               \
	static void make_##row(struct made *m) \
	{                                      \
		__VA_ARGS__;                   \
	}
DAMAGES(MAKER)

static void test_elf(void **state)
{
	static const struct {
		const char *row;
		int outcome;
		void (*make)(struct made *);
	} damages[] = {
#define ROW(row, outcome, ...) {#row, SL_ELF_##outcome, make_##row},
		DAMAGES(ROW)
#undef ROW
	};
	char path[] = "/tmp/sluice-unit-XXXXXX";
	struct sl_elf elf;

	(void)state;
	close(mkstemp(path));
	for (size_t i = 0; i < SL_ARRAY_LEN(damages); i++) {
		struct made m = make_library();

		damages[i].make(&m);
		put(path, &m, sizeof(m));
		assert_row_u64(damages[i].row, (uint64_t)sl_elf_read(path, &elf),
			(uint64_t)damages[i].outcome);
	}
	/* Its definitions are not its needs. */
	struct made m = make_library();

	for (size_t size = 0; size < sizeof(m) - sizeof(m.strings); size++) {
		put(path, &m, size);
		assert_int_not_equal(sl_elf_read(path, &elf), SL_ELF_OK);
	}
	put(path, &m, sizeof(m));
	assert_int_equal(sl_elf_read(path, &elf), SL_ELF_OK);
	assert_string_equal(elf.soname, "libsluice.so");
	assert_string_equal(m.strings + AT_DEFINED, "GLIBC_2.34");
	assert_int_equal(elf.needs_glibc, 17);
	unlink(path);
}

/* Another library would load without a word, and the program would run without limits. */
static void test_not_ours(void **state)
{
	char path[] = "/tmp/sluice-unit-XXXXXX", found[SL_PATH_MAX];
	struct made m = make_library();
	struct sl_error err = {0};

	(void)state;
	close(mkstemp(path));
	setenv("SLUICE_LIBRARY", path, 1);
	assert_int_equal(
		sl_library_find(found, sizeof(found), &err), SL_LIBRARY_UNUSABLE);
	assert_row_contains("empty", err.text, "not a library at all");
	m.strings[AT_SONAME] = 'X';
	put(path, &m, sizeof(m));
	assert_int_equal(
		sl_library_find(found, sizeof(found), &err), SL_LIBRARY_UNUSABLE);
	assert_row_contains("another's", err.text, "is not Sluice's library");
	m.strings[AT_SONAME] = 'l';
	put(path, &m, sizeof(m));
	assert_int_equal(sl_library_find(found, sizeof(found), &err), SL_LIBRARY_OK);
	unlink(path);
	unsetenv("SLUICE_LIBRARY");
}

/* SLUICE_LIBRARY may have any name. */
static void test_other_name(void **state)
{
	char *value = sl_library_preload("/l/other.so", "/l/other.so:/a.so:/l/other.so2");

	(void)state;
	assert_string_equal(value, "/l/other.so:/a.so:/l/other.so2");
	free(value);
}

static void test_environment(void **state)
{
	char dir[] = "/tmp/sluice unit XXXXXX", file[64], link[64], path[SL_PATH_MAX];
	struct made m = make_library();
	struct sl_error err = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/libsluice.so", dir);
	put(file, &m, sizeof(m));

	setenv("SLUICE_LIBRARY", file, 1);
	assert_int_equal(sl_library_find(path, sizeof(path), &err), SL_LIBRARY_UNUSABLE);
	assert_row_contains("blank", err.text, "LD_PRELOAD cannot carry");
	/* The remedy it names works. */
	snprintf(link, sizeof(link), "/tmp/sluice-unit-%d.so", (int)getpid());
	assert_int_equal(symlink(file, link), 0);
	setenv("SLUICE_LIBRARY", link, 1);
	assert_int_equal(sl_library_find(path, sizeof(path), &err), SL_LIBRARY_OK);
	assert_string_equal(path, link);
	unlink(link);
	assert_int_equal(sl_library_find(path, sizeof(path), &err), SL_LIBRARY_MISSING);
	assert_row_contains("gone", err.text, link);
	unlink(file);
	rmdir(dir);
	unsetenv("SLUICE_LIBRARY");
}

/* No library is beside this test. */
static void test_missing(void **state)
{
	char path[SL_PATH_MAX], dir[SL_PATH_MAX];
	struct sl_error err = {0};

	(void)state;
	assert_int_equal(sl_paths_program_dir(dir, sizeof(dir)), 0);
	assert_int_equal(sl_library_find(path, sizeof(path), &err), SL_LIBRARY_MISSING);
	assert_row_contains("places", err.text, dir);
	assert_row_contains("remedy", err.text, "SLUICE_LIBRARY");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_preload),
		cmocka_unit_test(test_elf),
		cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_other_name),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
