/*
 * What CMD is. The test writes the ELF files itself, header by header, so that every kind is tested
 * on every machine; none is executed. A program that silently runs without limits is peer-failures
 * row 23.
 */
#include "../../base/test.h"

#include "cli/line/program.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/sluice-unit-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const void *data, size_t size, mode_t mode)
{
	FILE *file = fopen(path_of(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
	assert_int_equal(chmod(path_of(name), mode), 0);
}

static void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text), 0755);
}

/* An ELF file that says it wants interp (NULL: static). */
static void put_elf(
	const char *name, int class, int machine, const char *interp, mode_t mode)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr rows[2];
		char interp[64];
	} file = {0};

	memcpy(file.head.e_ident, ELFMAG, SELFMAG);
	file.head.e_ident[EI_CLASS] = (unsigned char)class;
	file.head.e_machine = (Elf64_Half)machine;
	file.head.e_phoff = offsetof(__typeof__(file), rows);
	file.head.e_phentsize = sizeof(Elf64_Phdr);
	file.head.e_phnum = 2;
	file.rows[0].p_type = PT_LOAD;
	file.rows[1].p_type = interp ? PT_INTERP : PT_NOTE;
	file.rows[1].p_offset = offsetof(__typeof__(file), interp);
	file.rows[1].p_filesz = sizeof(file.interp);
	if (interp)
		strcpy(file.interp, interp);
	put(name, &file, sizeof(file), mode);
}

/* The kind of program we are ourselves is the native one. */
static int native_machine(void)
{
	Elf64_Ehdr head = {0};
	FILE *self = fopen("/proc/self/exe", "r");

	assert_int_equal(fread(&head, 1, sizeof(head), self), sizeof(head));
	fclose(self);
	return head.e_machine;
}

static int set_up(void **state)
{
	int native = native_machine();

	(void)state;
	assert_non_null(mkdtemp(dir));
	put_elf("dynamic", ELFCLASS64, native, "/lib64/ld-linux-x86-64.so.2", 0755);
	put_elf("static", ELFCLASS64, native, NULL, 0755);
	put_elf("musl", ELFCLASS64, native, "/lib/ld-musl-x86_64.so.1", 0755);
	put_elf("bits32", ELFCLASS32, EM_386, "/lib/ld-linux.so.2", 0755);
	put_elf("foreign", ELFCLASS64, EM_S390, "/lib/ld64.so.1", 0755);
	put_elf("docker", ELFCLASS64, native, "/lib64/ld-linux-x86-64.so.2", 0755);
	put_elf("apptainer", ELFCLASS64, native, "/lib64/ld-linux-x86-64.so.2", 0755);
	put_elf("closed", ELFCLASS64, native, "/lib64/ld-linux-x86-64.so.2", 0644);
	put("cut", ELFMAG, SELFMAG, 0755);
	put_text("script", "#!/bin/sh\nexit 0\n");
	put_text("env-script", "#!/usr/bin/env sh\nexit 0\n");
	put_text("env-s-script", "#!/usr/bin/env -S A=b sh -e\nexit 0\n");
	put_text("env-docker", "#!/usr/bin/env docker\n");
	put_text("no-interpreter", "#!/nonexistent/python3\n");
	put_text("empty-interpreter", "#!\n");
	put_text("text", "exit 0\n");
	return setenv("PATH", "/bin:/usr/bin", 1);
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static const struct {
	const char *name;
	int outcome;
	const char *says;
} rows[] = {
	{"dynamic", SL_PROGRAM_OK, ""},
	{"static", SL_PROGRAM_UNFIT, "linked statically"},
	{"musl", SL_PROGRAM_UNFIT, "musl"},
	{"bits32", SL_PROGRAM_UNFIT, "32-bit"},
	{"foreign", SL_PROGRAM_UNFIT, "foreign"},
	{"docker", SL_PROGRAM_UNFIT, "docker run IMAGE CMD"},
	{"apptainer", SL_PROGRAM_UNFIT, "PREFIX: the folder"},
	{"closed", SL_PROGRAM_NOT_EXECUTABLE, "Permission denied"},
	{"cut", SL_PROGRAM_NOT_EXECUTABLE, "cut short"},
	{"script", SL_PROGRAM_OK, ""},
	{"env-script", SL_PROGRAM_OK, ""},
	{"env-s-script", SL_PROGRAM_OK, ""},
	{"no-interpreter", SL_PROGRAM_NOT_FOUND, "an interpreter"},
	{"empty-interpreter", SL_PROGRAM_OK, ""},
	{"text", SL_PROGRAM_OK, ""},
	{"absent", SL_PROGRAM_NOT_FOUND, "not found"},
	{".", SL_PROGRAM_NOT_EXECUTABLE, "cannot be executed"},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char found[SL_PATH_MAX];
		struct sl_error err = {0};
		int outcome = sl_program_inspect(
			path_of(rows[i].name), found, sizeof(found), &err);

		assert_row_u64(
			rows[i].name, (uint64_t)outcome, (uint64_t)rows[i].outcome);
		assert_row_contains(rows[i].name, err.text, rows[i].says);
	}
}

/* The command behind env and the like is judged too. D and S stand for the docker and the static
 * program that the test made. */
static void test_wrappers(void **state)
{
	static const struct {
		const char *words;
		int outcome;
	} cases[] = {
		{"env D", SL_PROGRAM_UNFIT},
		{"env A=b B= D run", SL_PROGRAM_UNFIT},
		{"env -i -u HOME --chdir /tmp A=b S", SL_PROGRAM_UNFIT},
		{"env -iuHOME D", SL_PROGRAM_UNFIT},
		{"env - -- A=b D", SL_PROGRAM_UNFIT},
		{"/usr/bin/env D", SL_PROGRAM_UNFIT},
		{"nice D", SL_PROGRAM_UNFIT},
		{"nice -n 5 D", SL_PROGRAM_UNFIT},
		{"nice -10 D", SL_PROGRAM_UNFIT},
		{"nice --adjustment=5 D", SL_PROGRAM_UNFIT},
		{"nohup S", SL_PROGRAM_UNFIT},
		{"timeout -k 5 --signal INT 10s D", SL_PROGRAM_UNFIT},
		{"timeout 10 nice env A=b D", SL_PROGRAM_UNFIT},
		{"setsid -w D", SL_PROGRAM_UNFIT},
		{"stdbuf -oL -e 0 D", SL_PROGRAM_UNFIT},
		{"ionice -c 2 -n7 D", SL_PROGRAM_UNFIT},
		{"taskset -c 0-3 D", SL_PROGRAM_UNFIT},
		{"chrt -r 5 D", SL_PROGRAM_UNFIT},
		{"env -i sh", SL_PROGRAM_UNFIT},
		{"env -vi A=b sh", SL_PROGRAM_UNFIT},
		{"env - sh", SL_PROGRAM_UNFIT},
		{"nice env --ignore-environment -- sh", SL_PROGRAM_UNFIT},
		{"env -u LD_PRELOAD sh", SL_PROGRAM_UNFIT},
		{"env --unset=LD_PRELOAD sh", SL_PROGRAM_UNFIT},
		{"env -i LD_PRELOAD=x sh", SL_PROGRAM_OK},
		{"env -u LD_LIBRARY_PATH sh", SL_PROGRAM_OK},
		{"env -ui sh", SL_PROGRAM_OK},
		{"env -i", SL_PROGRAM_OK},
		{"env", SL_PROGRAM_OK},
		{"env -u", SL_PROGRAM_OK},
		{"env sh D", SL_PROGRAM_OK},
		{"env no-such-program", SL_PROGRAM_OK},
		{"timeout D sh", SL_PROGRAM_OK},
		{"nice -n D sh", SL_PROGRAM_OK},
		{"sh env D", SL_PROGRAM_OK},
		{"no-such-program D", SL_PROGRAM_NOT_FOUND},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		char text[200], made[2][64], found[SL_PATH_MAX];
		char *words[16] = {0}, *save = NULL;
		struct sl_error err = {0};
		size_t n = 0;

		snprintf(made[0], sizeof(made[0]), "%s/docker", dir);
		snprintf(made[1], sizeof(made[1]), "%s/static", dir);
		snprintf(text, sizeof(text), "%s", cases[i].words);
		for (char *word = strtok_r(text, " ", &save); word;
			word = strtok_r(NULL, " ", &save))
			words[n++] = !strcmp(word, "D")   ? made[0]
				     : !strcmp(word, "S") ? made[1]
							  : word;
		assert_row_u64(cases[i].words,
			(uint64_t)sl_program_inspect_words(
				words, found, sizeof(found), &err),
			(uint64_t)cases[i].outcome);
		assert_int_equal(err.text[0] != 0, cases[i].outcome != SL_PROGRAM_OK);
	}
}

/* `env -S TEXT` splits TEXT itself. %D stands for the docker that the test made. Sluice cannot
 * follow quotes, escapes and variables, and accepts such a TEXT. */
static void test_env_split(void **state)
{
	static const struct {
		const char *before, *text, *after;
		int outcome;
	} cases[] = {
		{"-S", "%D run", NULL, SL_PROGRAM_UNFIT},
		{"-S", "A=b nice %D", "run", SL_PROGRAM_UNFIT},
		{"-S", "nice -n 5", "%D", SL_PROGRAM_UNFIT},
		{"-i", "-S%D run", NULL, SL_PROGRAM_UNFIT},
		{"-i", "-iS%D run", NULL, SL_PROGRAM_UNFIT},
		{"-i", "--split-string=%D run", NULL, SL_PROGRAM_UNFIT},
		{"-S", "-S%D", NULL, SL_PROGRAM_UNFIT},
		{"-S", "sh -c", "%D", SL_PROGRAM_OK},
		{"-S", "'%D' run", NULL, SL_PROGRAM_OK},
		{"-S", "${D} run", NULL, SL_PROGRAM_OK},
		{"-S", "", NULL, SL_PROGRAM_OK},
		{"-S", NULL, NULL, SL_PROGRAM_OK},
		{"--", "-S%D", NULL, SL_PROGRAM_OK},
	};
	char made[256];

	(void)state;
	put_text("docker", "#!/bin/sh\nexit 0\n");
	snprintf(made, sizeof(made), "%s", path_of("docker"));
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		const char *parts[] = {cases[i].before, cases[i].text, cases[i].after};
		char env[] = "env", texts[3][512], *words[5] = {env};
		char found[SL_PATH_MAX];
		struct sl_error err = {0};

		for (size_t w = 0; w < 3 && parts[w]; w++) {
			const char *mark = strstr(parts[w], "%D");

			snprintf(texts[w], sizeof(texts[w]), "%.*s%s%s",
				(int)(mark ? mark - parts[w] : 100), parts[w],
				mark ? made : "", mark ? mark + 2 : "");
			words[w + 1] = texts[w];
		}
		assert_row_u64(cases[i].text ? cases[i].text : "nothing",
			(uint64_t)sl_program_inspect_words(
				words, found, sizeof(found), &err),
			(uint64_t)cases[i].outcome);
		assert_int_equal(err.text[0] != 0, cases[i].outcome != SL_PROGRAM_OK);
	}
}

/* A script whose interpreter never ends is the kernel's to refuse, not ours to follow. */
static void test_script_loop(void **state)
{
	char found[SL_PATH_MAX], text[300];
	struct sl_error err = {0};

	(void)state;
	snprintf(text, sizeof(text), "#!%s/loop\n", dir);
	put_text("loop", text);
	assert_int_equal(sl_program_inspect(path_of("loop"), found, sizeof(found), &err),
		SL_PROGRAM_OK);
}

static void test_path_search(void **state)
{
	char found[SL_PATH_MAX], value[256];
	struct sl_error err = {0};

	(void)state;
	assert_int_equal(
		sl_program_inspect("sh", found, sizeof(found), &err), SL_PROGRAM_OK);
	assert_string_equal(found, "/bin/sh");
	assert_int_equal(
		sl_program_inspect("no-such-program", found, sizeof(found), &err),
		SL_PROGRAM_NOT_FOUND);
	assert_int_equal(
		sl_program_inspect("", found, sizeof(found), &err), SL_PROGRAM_NOT_FOUND);
	/* What may not be executed is passed over, and remembered. */
	snprintf(value, sizeof(value), "%s:/bin", dir);
	setenv("PATH", value, 1);
	assert_int_equal(sl_program_inspect("closed", found, sizeof(found), &err),
		SL_PROGRAM_NOT_EXECUTABLE);
	assert_int_equal(sl_program_inspect("env-docker", found, sizeof(found), &err),
		SL_PROGRAM_UNFIT);
	assert_row_contains("env-docker", err.text, "docker");
	setenv("PATH", "/bin:/usr/bin", 1);
}

static void test_set_user_id(void **state)
{
	struct sl_error err = {0};

	(void)state;
	put_elf("setuid", ELFCLASS64, native_machine(), "/lib64/ld-linux-x86-64.so.2",
		0755);
	if (geteuid() != 0) {
		/* Our own file changes nothing, so the loader listens. */
		chmod(path_of("setuid"), 04755);
		assert_int_equal(
			sl_program_judge_file(path_of("setuid"), &err), SL_PROGRAM_OK);
		return;
	}
	assert_int_equal(chown(path_of("setuid"), 65534, 65534), 0);
	assert_int_equal(chmod(path_of("setuid"), 04755), 0);
	assert_int_equal(
		sl_program_judge_file(path_of("setuid"), &err), SL_PROGRAM_UNFIT);
	assert_row_contains("setuid", err.text, "set-user-id");
	assert_int_equal(chmod(path_of("setuid"), 02755), 0);
	assert_int_equal(
		sl_program_judge_file(path_of("setuid"), &err), SL_PROGRAM_UNFIT);
	assert_row_contains("setgid", err.text, "set-group-id");
	assert_int_equal(chown(path_of("setuid"), 0, 0), 0);
	assert_int_equal(chmod(path_of("setuid"), 06755), 0);
	assert_int_equal(sl_program_judge_file(path_of("setuid"), &err), SL_PROGRAM_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_wrappers),
		cmocka_unit_test(test_env_split),
		cmocka_unit_test(test_script_loop),
		cmocka_unit_test(test_path_search),
		cmocka_unit_test(test_set_user_id),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
