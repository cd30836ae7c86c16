/*
 * compare - runs both sides one after the other and looks for the first step that differs
 */
#include "compare.h"

#include "prog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

size_t storm_answers_bytes(size_t steps)
{
	return sizeof(struct storm_answers) +
	       steps * (sizeof(struct storm_result) + STORM_TEXT);
}

char *storm_text(struct storm_answers *a, size_t steps, size_t i)
{
	return (char *)&a->result[steps] + i * STORM_TEXT;
}

struct storm_answers *storm_map_answers(const char *path, size_t steps, bool make)
{
	size_t bytes = storm_answers_bytes(steps);
	int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_TRUNC : 0), 0600);
	struct storm_answers *a = MAP_FAILED;

	if (fd >= 0 && (!make || ftruncate(fd, (off_t)bytes) == 0))
		a = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (a == MAP_FAILED) {
		fprintf(stderr, "storm: cannot use %s: %s\n", path, strerror(errno));
		return NULL;
	}
	return a;
}

static void exec_side(
	struct storm_sides *sides, bool plain, const char *sequence, const char *answers)
{
	char *words[24];
	unsigned count = 0;

	while (!plain && sides->front && sides->front[count] && count < 16) {
		words[count] = sides->front[count];
		count++;
	}
	words[count++] = (char *)sides->self;
	words[count++] = "--side";
	words[count++] = (char *)sequence;
	words[count++] = (char *)answers;
	words[count] = NULL;
	if (!plain && sides->faults)
		setenv("SLUICE_SOFTGPU_FAULTS", sides->faults, 1);
	execvp(words[0], words);
	fprintf(stderr, "storm: cannot start %s: %s\n", words[0], strerror(errno));
	_exit(127);
}

/* The side's answers, or NULL. Its own exit status repeats what the answers say. */
static struct storm_answers *run_side(
	struct storm_sides *sides, bool plain, const char *sequence, size_t steps)
{
	struct storm_answers *a;
	char path[512];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s.answers", sides->folder,
		plain ? "plain" : "other");
	a = storm_map_answers(path, steps, true);
	if (!a)
		return NULL;
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exec_side(sides, plain, sequence, path);
	if (pid < 0 || waitpid(pid, &status, 0) != pid ||
		(WIFEXITED(status) && WEXITSTATUS(status) > 1)) {
		fprintf(stderr, "storm: the %s side did not start\n",
			plain ? "plain" : "other");
		munmap(a, storm_answers_bytes(steps));
		return NULL;
	}
	return a;
}

/* How the side's first bad worker ended; false: all ended well. */
static bool ended_badly(const struct storm_sequence *q, const struct storm_answers *a,
	unsigned *worker, char *what, size_t size)
{
	for (unsigned i = 0; i < q->workers; i++) {
		int status = a->status[i];

		if (!status)
			continue;
		*worker = i;
		if (status == -1)
			snprintf(what, size, "worker %u hung", i);
		else if (WIFSIGNALED(status))
			snprintf(what, size, "worker %u died of signal %d", i,
				WTERMSIG(status));
		else
			snprintf(what, size, "worker %u ended with status %d", i,
				WEXITSTATUS(status));
		return true;
	}
	return false;
}

/* The first step of a worker that was not done; the last of the sequence if all were. */
static size_t where(
	const struct storm_sequence *q, const struct storm_answers *a, unsigned worker)
{
	for (size_t i = 0; i < q->count; i++)
		if (q->step[i].worker == worker && !a->result[i].done)
			return i;
	return q->count - 1;
}

static void look(const struct storm_sequence *q, struct storm_answers *plain,
	struct storm_answers *other, struct storm_difference *d)
{
	unsigned worker;
	char how[128];

	d->verdict = STORM_ALIKE;
	snprintf(d->what, sizeof(d->what), "this time all answers are alike");
	if (ended_badly(q, plain, &worker, how, sizeof(how))) {
		d->verdict = STORM_BROKEN;
		d->at = where(q, plain, worker);
		snprintf(d->what, sizeof(d->what), "on the plain side %s", how);
		return;
	}
	/* The software GPU's fault, or the storm's own: it never means to do that. */
	if (plain->broken) {
		d->verdict = STORM_BROKEN;
		d->at = plain->broken - 1;
		snprintf(d->what, sizeof(d->what),
			"on the plain side a bad access broke the context before this "
			"step");
		return;
	}
	for (size_t i = 0; i < q->count; i++)
		if (other->result[i].done &&
			plain->result[i].hash != other->result[i].hash) {
			d->verdict = STORM_DIFFERS;
			d->at = i;
			snprintf(d->what, sizeof(d->what),
				"the answers of a step differ (%u calls, the last %s; "
				"%u, %s)",
				plain->result[i].calls,
				prog_error_name((CUresult)plain->result[i].code),
				other->result[i].calls,
				prog_error_name((CUresult)other->result[i].code));
			return;
		}
	if (other->broken) {
		d->verdict = STORM_DIFFERS;
		d->at = other->broken - 1;
		snprintf(d->what, sizeof(d->what),
			"on the other side a bad access broke the context before this "
			"step");
		return;
	}
	if (ended_badly(q, other, &worker, how, sizeof(how))) {
		d->verdict = STORM_DIFFERS;
		d->at = where(q, other, worker);
		snprintf(d->what, sizeof(d->what), "on the other side %s", how);
	}
}

static void count(struct storm_sides *sides, const struct storm_sequence *q,
	const struct storm_answers *a)
{
	for (unsigned i = 0; i < STORM_IDS_MAX; i++) {
		sides->calls[i] += a->calls[i];
		sides->refused[i] += a->refused[i];
	}
	for (size_t i = 0; i < q->count; i++)
		sides->total += a->result[i].calls;
}

void storm_compare(struct storm_sides *sides, const struct storm_sequence *q,
	struct storm_difference *d)
{
	size_t bytes = storm_answers_bytes(q->count);
	struct storm_answers *plain, *other = NULL;
	size_t at = d->at < q->count ? d->at : 0;
	char path[512];

	memset(d, 0, sizeof(*d));
	d->at = at;
	d->verdict = STORM_BROKEN;
	snprintf(d->what, sizeof(d->what), "a side did not start");
	snprintf(path, sizeof(path), "%s/sequence", sides->folder);
	if (!q->count || !storm_write(q, path))
		return;
	plain = run_side(sides, true, path, q->count);
	if (plain)
		other = run_side(sides, false, path, q->count);
	if (plain && other) {
		look(q, plain, other, d);
		count(sides, q, plain);
		memcpy(d->plain, storm_text(plain, q->count, d->at), STORM_TEXT);
		memcpy(d->other, storm_text(other, q->count, d->at), STORM_TEXT);
	}
	if (plain)
		munmap(plain, bytes);
	if (other)
		munmap(other, bytes);
}
