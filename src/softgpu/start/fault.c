/*
 * fault - makes chosen calls fail or hang
 *
 * "cuMemCreate:3=oom,cuMemMap:@5=unknown,cuMemcpyHtoD_v2:2=hang": the third cuMemCreate of this
 * process returns out-of-memory, every fifth cuMemMap an unknown error, the second copy never
 * returns. link/settings.h has the grammar. An invalid row is reported on stderr and left out,
 * since a test with a silently ignored row would test nothing.
 *
 * A plan may be in a file instead. The file is read again, and counting starts again, whenever
 * another file is moved to that name; so a test chooses the moment of a failure. Each row that
 * failed a call is written to FILE.met, and a hanging call goes on, without error, once the file is
 * replaced.
 */
#include "softgpu/driver/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RULES_MAX 64
#define HANG      (-1)

static struct rule {
	enum sl_entry_id id;
	unsigned long n;
	bool every;
	int what; /* a CUresult or HANG */
} rules[RULES_MAX];
static unsigned rule_count;
static _Atomic unsigned long calls[SL_ENTRY_COUNT];

/* The plan of the file; its rules and counts are under the mutex. */
static struct {
	pthread_mutex_t mutex;
	const char *path; /* constant; NULL: there is none */
	ino_t inode;
	struct rule rules[RULES_MAX];
	unsigned rule_count;
	unsigned long calls[SL_ENTRY_COUNT];
} filed = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const char *const entry_names[] = {
#define SL_ENTRY(name, since, need) #name,
#include "softgpu/driver/entry.def"
#undef SL_ENTRY
};

/* Digits only, from 1: strtoul also accepts signs and blanks, and -1 would mean a hang. */
static bool read_number(const char *text, unsigned long *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoul(text, &end, 10);
	return !*end && !errno && *out;
}

static bool read_what(const char *text, int *what)
{
	static const struct {
		const char *name;
		int value;
	} names[] = {
#define NAME(name, number, text) {#name, number},
		SL_CU_RESULTS(NAME)
#undef NAME
			{"ERROR_OOM", CUDA_ERROR_OUT_OF_MEMORY},
		{"ERROR_HANG", HANG},
	};
	unsigned long number;

	if (read_number(text, &number) && number <= INT_MAX) {
		*what = (int)number;
		return true;
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		const char *name = names[i].name;

		if (!strncmp(name, "ERROR_", 6))
			name += 6;
		if (!strcasecmp(name, text)) {
			*what = names[i].value;
			return true;
		}
	}
	return false;
}

static bool read_rule(char *text, struct rule *r)
{
	char *colon = strchr(text, ':'), *equals = strchr(text, '=');

	if (!colon || !equals || equals < colon)
		return false;
	*colon = *equals = '\0';
	r->every = colon[1] == '@';
	if (!read_number(colon + 1 + r->every, &r->n) || !read_what(equals + 1, &r->what))
		return false;
	for (unsigned i = 0; i < SL_ENTRY_COUNT; i++)
		if (!strcmp(entry_names[i], text)) {
			r->id = (enum sl_entry_id)i;
			return true;
		}
	return false;
}

static void complain(const char *row, const char *why)
{
	fprintf(stderr, "sluice software GPU: fault plan: '%s' %s\n", row, why);
}

static void read_plan(const char *plan, struct rule *to, unsigned *count)
{
	char *copy = strdup(plan), *rest = copy, *row;

	while (copy && (row = strsep(&rest, ",\n"))) {
		char whole[128];
		struct rule r;

		snprintf(whole, sizeof(whole), "%s", row);
		if (!*row)
			continue;
		if (!read_rule(row, &r))
			complain(whole, "not understood");
		else if (*count == RULES_MAX)
			complain(whole, "one rule too many");
		else
			to[(*count)++] = r;
	}
	free(copy);
}

void sl_fault_init(const char *of_box)
{
	const char *own = getenv(SL_SOFTGPU_ENV_FAULTS);

	filed.path = getenv(SL_SOFTGPU_ENV_FAULTS_FILE);
	if (of_box && *of_box)
		read_plan(of_box, rules, &rule_count);
	if (own)
		read_plan(own, rules, &rule_count);
}

/* --- the plan of a file ------------------------------------------------------------------- */

static ino_t inode_of_file(void)
{
	struct stat st;

	return stat(filed.path, &st) == 0 ? st.st_ino : 0;
}

/* Under the mutex. */
static void read_file(ino_t inode)
{
	char plan[1024];
	int fd = inode ? open(filed.path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t size = fd < 0 ? 0 : read(fd, plan, sizeof(plan) - 1);

	plan[size > 0 ? size : 0] = '\0';
	if (fd >= 0)
		close(fd);
	filed.inode = inode;
	filed.rule_count = 0;
	memset(filed.calls, 0, sizeof(filed.calls));
	read_plan(plan, filed.rules, &filed.rule_count);
}

static void tell_met(const struct rule *r)
{
	char path[PATH_MAX], line[128];
	int fd, length;

	snprintf(path, sizeof(path), "%s.met", filed.path);
	length = snprintf(line, sizeof(line), "%s:%s%lu=%d\n", entry_names[r->id],
		r->every ? "@" : "", r->n, r->what);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)length) != length)
		complain(line, "was met, which cannot be told");
	if (fd >= 0)
		close(fd);
}

/* The file's plan for this call: a CUresult or HANG. */
static int next_filed(enum sl_entry_id id, ino_t *inode)
{
	int what = CUDA_SUCCESS;
	unsigned long n;

	*inode = inode_of_file();
	pthread_mutex_lock(&filed.mutex);
	if (*inode != filed.inode)
		read_file(*inode);
	n = ++filed.calls[id];
	for (unsigned i = 0; i < filed.rule_count && what == CUDA_SUCCESS; i++) {
		const struct rule *r = &filed.rules[i];

		if (r->id != id || (r->every ? n % r->n != 0 : n != r->n))
			continue;
		what = r->what;
		tell_met(r);
	}
	pthread_mutex_unlock(&filed.mutex);
	return what;
}

static CUresult check_filed(enum sl_entry_id id)
{
	const struct timespec while_it_hangs = {0, 5000000};
	ino_t inode;
	int what = next_filed(id, &inode);

	if (what != HANG)
		return (CUresult)what;
	while (inode_of_file() == inode)
		nanosleep(&while_it_hangs, NULL);
	return CUDA_SUCCESS;
}

CUresult sl_fault_check(enum sl_entry_id id)
{
	unsigned long n;

	if (!rule_count)
		return filed.path ? check_filed(id) : CUDA_SUCCESS;
	n = atomic_fetch_add(&calls[id], 1) + 1;
	for (unsigned i = 0; i < rule_count; i++) {
		const struct rule *r = &rules[i];

		if (r->id != id || (r->every ? n % r->n != 0 : n != r->n))
			continue;
		while (r->what == HANG)
			pause();
		return (CUresult)r->what;
	}
	return filed.path ? check_filed(id) : CUDA_SUCCESS;
}
