/*
 * LD_PRELOAD works through the dynamic loader of the program that is executed in the end, so that
 * file decides. A static program has no loader; a set-user-id program makes its loader ignore the
 * variable; the loader of a 32-bit or musl program cannot load this library. A script is judged by
 * its interpreter, as in the kernel, and as deep as the kernel follows interpreters.
 *
 * Refusing is better than running without limits. What users report most about preloaded libraries
 * is a program that silently gets the whole GPU (peer-failures row 23).
 */
#include "cli/line/program.h"

#include "base/file.h"
#include "base/elffile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Nested "#!" that Linux follows (fs/exec.c gives up with ELOOP beyond). */
#define SCRIPT_DEPTH_MAX    5
#define SCRIPT_LINE_MAX     256
#define PROGRAM_HEADERS_MAX 256
#define PRELOAD             "LD_PRELOAD"

static const struct front {
	const char *program, *why, *remedy;
} fronts[] = {
#define SL_FRONT(program, why, remedy) {program, why, remedy},
#include "cli/line/fronts.def"
#undef SL_FRONT
};

static const struct wrapper {
	const char *program, *valued;
	unsigned int words;
} wrappers[] = {
#define SL_WRAPPER(program, valued, words) {program, valued, words},
#include "cli/line/wrappers.def"
#undef SL_WRAPPER
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The prefix of this installation; false in a build folder, which has none. */
static bool own_prefix(char *dir, size_t size)
{
	char *slash;

	if (sl_paths_program_dir(dir, size))
		return false;
	slash = strrchr(dir, '/');
	if (!slash || slash == dir || strcmp(slash, "/bin"))
		return false;
	*slash = '\0';
	return true;
}

/* PREFIX in a remedy becomes that folder, ready to type; without one it is explained. */
static void set_front(const struct front *front, struct sl_error *err)
{
	static const char mark[] = "PREFIX";
	char prefix[SL_PATH_MAX], text[SL_ERROR_TEXT_MAX] = "";
	const char *from = front->remedy;
	bool is_known = own_prefix(prefix, sizeof(prefix)) && strlen(prefix) < 64;
	size_t used = 0;

	for (const char *at; is_known && (at = strstr(from, mark));) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s%s",
			(int)(at - from), from, prefix);
		if (used >= sizeof(text))
			used = sizeof(text) - 1;
		from = at + strlen(mark);
	}
	(void)snprintf(text + used, sizeof(text) - used, "%s", from);
	sl_error_set(err, "%s %s; %s%s", front->program, front->why, text,
		strstr(text, mark) ? " (PREFIX: the folder Sluice is installed in)" : "");
}

static int judge_front(const char *path, struct sl_error *err)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(fronts); i++) {
		if (strcmp(last_part(path), fronts[i].program))
			continue;
		set_front(&fronts[i], err);
		return SL_PROGRAM_UNFIT;
	}
	return SL_PROGRAM_OK;
}

/* The loader ignores LD_PRELOAD (AT_SECURE) if executing the file changes the user or the
 * rights. */
static int judge_rights(const char *path, const struct stat *st, struct sl_error *err)
{
	bool changes_user = (st->st_mode & S_ISUID) && st->st_uid != geteuid();
	bool changes_group = (st->st_mode & S_ISGID) && st->st_gid != getegid();
	bool has_capabilities =
		geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;

	if (!changes_user && !changes_group && !has_capabilities)
		return SL_PROGRAM_OK;
	sl_error_set(err,
		"%.200s is %s, so the loader ignores LD_PRELOAD and it would run without "
		"Sluice; "
		"use a copy without that, or run sluice as the user it changes to",
		path,
		changes_user    ? "set-user-id"
		: changes_group ? "set-group-id"
				: "given capabilities");
	return SL_PROGRAM_UNFIT;
}

/* Puts the text of PT_INTERP into interp, "" if there is none. False if the file cannot be read. */
static bool read_interp(int fd, const Elf64_Ehdr *head, char *interp, size_t size)
{
	size_t count =
		head->e_phnum < PROGRAM_HEADERS_MAX ? head->e_phnum : PROGRAM_HEADERS_MAX;

	interp[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		Elf64_Phdr row;
		off_t at = (off_t)(head->e_phoff + i * sizeof(row));
		size_t len;

		if (pread(fd, &row, sizeof(row), at) != (ssize_t)sizeof(row))
			return false;
		if (row.p_type != PT_INTERP)
			continue;
		len = row.p_filesz < size ? row.p_filesz : size - 1;
		if (pread(fd, interp, len, (off_t)row.p_offset) != (ssize_t)len)
			return false;
		interp[len] = '\0';
		return true;
	}
	return true;
}

static int judge_elf(int fd, const char *path, struct sl_error *err)
{
	char interp[SL_PATH_MAX];
	Elf64_Ehdr head;

	if (pread(fd, &head, sizeof(head), 0) < (ssize_t)sizeof(Elf32_Ehdr)) {
		sl_error_set(err, "%.200s is cut short", path);
		return SL_PROGRAM_NOT_EXECUTABLE;
	}
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != SL_ELF_MACHINE) {
		sl_error_set(err,
			"%.200s is a %s program, and libsluice.so is for 64-bit programs "
			"of this "
			"machine; use a 64-bit build of it",
			path,
			head.e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "foreign");
		return SL_PROGRAM_UNFIT;
	}
	if (head.e_phentsize != sizeof(Elf64_Phdr) ||
		!read_interp(fd, &head, interp, sizeof(interp))) {
		sl_error_set(err, "%.200s is damaged: its program headers cannot be read",
			path);
		return SL_PROGRAM_NOT_EXECUTABLE;
	}
	if (!interp[0]) {
		sl_error_set(err,
			"%.200s is linked statically, so LD_PRELOAD has no effect and it "
			"would run "
			"without Sluice; link it dynamically",
			path);
		return SL_PROGRAM_UNFIT;
	}
	if (!strncmp(last_part(interp), "ld-musl", strlen("ld-musl"))) {
		sl_error_set(err,
			"%.200s is linked against musl, and libsluice.so needs glibc (as "
			"NVIDIA's "
			"driver does); use a glibc build of it",
			path);
		return SL_PROGRAM_UNFIT;
	}
	return SL_PROGRAM_OK;
}

static int inspect(
	const char *cmd, int depth, char *path, size_t size, struct sl_error *err);

/* "#! interpreter [argument]": the kernel executes the interpreter, or env looks it up. */
static int follow_script(char *line, int depth, struct sl_error *err)
{
	char path[SL_PATH_MAX];
	char *save = NULL;
	char *word = strtok_r(line + 2, " \t\r\n", &save);

	if (!word)
		return SL_PROGRAM_OK; /* the kernel returns ENOEXEC, and a shell runs it */
	if (strcmp(last_part(word), "env"))
		return inspect(word, depth + 1, path, sizeof(path), err);
	do {
		word = strtok_r(NULL, " \t\r\n", &save);
	} while (word && (word[0] == '-' || strchr(word, '=')));
	return word ? inspect(word, depth + 1, path, sizeof(path), err) : SL_PROGRAM_OK;
}

static int judge(const char *path, int depth, struct sl_error *err)
{
	sl_cleanup(sl_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char line[SCRIPT_LINE_MAX + 1];
	struct stat st;
	ssize_t n;
	int r;

	/* An executable file may be unreadable; then it cannot be judged. */
	if (fd < 0 || fstat(fd, &st) < 0)
		return SL_PROGRAM_OK;
	n = pread(fd, line, SCRIPT_LINE_MAX, 0);
	if (n < 0)
		n = 0;
	line[n] = '\0';
	if (n >= 2 && line[0] == '#' && line[1] == '!') {
		line[strcspn(line, "\n")] = '\0';
		return follow_script(line, depth, err);
	}
	r = judge_rights(path, &st, err);
	if (!r && n >= SELFMAG && !memcmp(line, ELFMAG, SELFMAG))
		r = judge_elf(fd, path, err);
	return r;
}

int sl_program_judge_file(const char *path, struct sl_error *err)
{
	return judge(path, 0, err);
}

/* 0 if path is an executable file, else errno. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EACCES;
	return access(path, X_OK) ? errno : 0;
}

/* Searches PATH as a shell does, for the first executable of that name. A file without permission
 * is remembered, to tell 126 from 127. An unreadable folder counts as empty. */
static int search(const char *cmd, char *path, size_t size)
{
	const char *dirs = getenv("PATH");
	int found = ENOENT;

	for (const char *dir = dirs ? dirs : "/bin:/usr/bin"; dir;) {
		size_t len = strcspn(dir, ":");
		int n = snprintf(
			path, size, "%.*s%s%s", (int)len, dir, len ? "/" : "", cmd);
		int r = n > 0 && (size_t)n < size ? executable(path) : ENAMETOOLONG;

		if (!r)
			return 0;
		if (r == EACCES && !access(path, F_OK))
			found = EACCES;
		dir = dir[len] ? dir + len + 1 : NULL;
	}
	return found;
}

static int inspect(
	const char *cmd, int depth, char *path, size_t size, struct sl_error *err)
{
	int r;

	if (strchr(cmd, '/')) {
		if (strlen(cmd) >= size)
			r = ENAMETOOLONG;
		else
			r = executable(strcpy(path, cmd));
	} else {
		r = *cmd ? search(cmd, path, size) : ENOENT;
	}
	if (r == ENOENT || r == ENOTDIR) {
		sl_error_set(err, "%.200s: not found%s", cmd,
			depth              ? " (an interpreter)"
			: strchr(cmd, '/') ? ""
					   : " along PATH");
		return SL_PROGRAM_NOT_FOUND;
	}
	if (r) {
		sl_error_set(err, "%.200s: cannot be executed: %s", cmd, strerror(r));
		return SL_PROGRAM_NOT_EXECUTABLE;
	}
	r = judge_front(path, err);
	if (r || depth >= SCRIPT_DEPTH_MAX)
		return r;
	return judge(path, depth, err);
}

int sl_program_inspect(const char *cmd, char *path, size_t size, struct sl_error *err)
{
	return inspect(cmd, 0, path, size, err);
}

/* Is the next word the option's value: `-k`, `-vk`, `--kill-after`? */
static bool takes_next(const char *valued, const char *option)
{
	size_t letters = strcspn(valued, " ");
	const char *name;

	if (!strncmp(option, "--", 2)) {
		size_t len = strlen(option + 2);

		for (name = valued + letters; *name;) {
			size_t n = strcspn(++name, " ");

			if (n == len && !memcmp(name, option + 2, n))
				return true;
			name += n;
		}
		return false;
	}
	for (option++; *option; option++)
		if (memchr(valued, *option, letters))
			return !option[1];
	return false;
}

char *const *sl_program_operand(const char *valued, char *const *words)
{
	for (; *words && **words == '-'; words++) {
		if (takes_next(valued, *words) && !*++words)
			return NULL;
	}
	return *words ? words : NULL;
}

/* The command behind a wrapper at words[0]; NULL if there is none or if it cannot be determined. */
static char *const *behind(const struct wrapper *wrapper, char *const *words)
{
	unsigned int left = wrapper->words;
	bool options = true;

	for (words++; *words; words++) {
		const char *word = *words;

		if (options && word[0] == '-') {
			options = strcmp(word, "--") != 0;
			if (takes_next(wrapper->valued, word) && !*++words)
				return NULL;
			continue;
		}
		options = false;
		if (strchr(word, '=') && !strcmp(wrapper->program, "env"))
			continue;
		if (!left--)
			return words;
	}
	return NULL;
}

static char *const *next_command(char *const *words)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(wrappers); i++)
		if (!strcmp(last_part(words[0]), wrappers[i].program))
			return behind(&wrappers[i], words);
	return NULL;
}

/* The text that `env -S TEXT` (-STEXT, -iS TEXT, --split-string=TEXT) splits into words, and the
 * words behind it in *rest; NULL if nothing is split. */
static const char *split_text(char *const *words, char *const **rest)
{
	static const char name[] = "--split-string";

	if (strcmp(last_part(words[0]), "env") != 0)
		return NULL;
	for (words++; *words && **words == '-' && strcmp(*words, "--"); words++) {
		const char *text = NULL;

		if (!strncmp(*words, name, strlen(name)))
			text = *words + strlen(name) + ((*words)[strlen(name)] == '=');
		else if ((*words)[1] != '-' && strchr(*words, 'S'))
			text = strchr(*words, 'S') + 1;
		if (!text)
			continue;
		if (!*text)
			text = *++words;
		*rest = text ? words + 1 : NULL;
		return text;
	}
	return NULL;
}

/* `env -i`, `env -`, `env -u LD_PRELOAD`; not if the variable is set again. */
static bool drops_preload(char *const *words)
{
	static const char *const named[] = {
		"-", "--ignore-environment", "--unset=" PRELOAD, "-u" PRELOAD};
	static const char valued[] = "uCS unset chdir split-string";
	bool drops = false;

	if (strcmp(last_part(words[0]), "env") != 0)
		return false;
	for (words++; *words && **words == '-' && strcmp(*words, "--"); words++) {
		const char *word = *words;

		for (size_t i = 0; i < SL_ARRAY_LEN(named); i++)
			drops |= strcmp(word, named[i]) == 0;
		if (word[1] != '-')
			drops |= strcspn(word, "i") < strcspn(word, "uCS");
		if (takes_next(valued, word) && words[1])
			drops |= strchr(word, 'u') && !strcmp(*++words, PRELOAD);
	}
	for (; *words && (!strcmp(*words, "--") || strchr(*words, '=')); words++)
		drops &= strncmp(*words, PRELOAD "=", sizeof(PRELOAD)) != 0;
	return drops && *words;
}

static int inspect_behind(char *const *words, int depth, struct sl_error *err);

/* env splits at blanks, and has quotes, escapes and variables; a text with any of these cannot be
 * judged, and passes. */
static int inspect_split(
	const char *text, char *const *rest, int depth, struct sl_error *err)
{
	char copy[1024], env[] = "env", *words[128] = {env}, *save = NULL;
	size_t n = 1;

	if (strlen(text) >= sizeof(copy) || strpbrk(text, "'\"\\$#"))
		return SL_PROGRAM_OK;
	strcpy(copy, text);
	for (char *word = strtok_r(copy, " \t\n", &save); word && n < 100;
		word = strtok_r(NULL, " \t\n", &save))
		words[n++] = word;
	while (*rest && n + 1 < SL_ARRAY_LEN(words))
		words[n++] = *rest++;
	return inspect_behind(words, depth + 1, err);
}

/* Judges the commands behind wrappers, one after the other: UNFIT with err, or OK. */
static int inspect_behind(char *const *words, int depth, struct sl_error *err)
{
	char *const *rest = NULL;

	do {
		const char *text = split_text(words, &rest);
		char inner[SL_PATH_MAX];

		if (drops_preload(words)) {
			sl_error_set(err,
				"env drops " PRELOAD
				" from CMD's environment, so it would run without "
				"Sluice; put it the other way round: env -i sluice run "
				"[options] -- CMD");
			return SL_PROGRAM_UNFIT;
		}
		if (text)
			return depth < SCRIPT_DEPTH_MAX
				       ? inspect_split(text, rest, depth, err)
				       : SL_PROGRAM_OK;
		words = next_command(words);
		if (words && sl_program_inspect(words[0], inner, sizeof(inner), err) ==
				     SL_PROGRAM_UNFIT)
			return SL_PROGRAM_UNFIT;
	} while (words);
	return SL_PROGRAM_OK;
}

int sl_program_inspect_words(
	char *const *words, char *path, size_t size, struct sl_error *err)
{
	int r = sl_program_inspect(words[0], path, size, err);
	struct sl_error why = {0};

	if (r || inspect_behind(words, 0, &why) != SL_PROGRAM_UNFIT)
		return r;
	if (err)
		*err = why;
	return SL_PROGRAM_UNFIT;
}
