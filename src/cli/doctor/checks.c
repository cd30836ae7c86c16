/*
 * The judgements. Each names the state and, if it is bad, the command to type. FAIL is for faults
 * that stop `sluice run` or `sluice submit`; a fault that only limits them is a warning.
 */
#include "cli/doctor/doctor.h"

#include "base/amount.h"
#include "base/nvml_abi.h"
#include "cli/line/cli.h"
#include "cli/line/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Virtual memory with cuMemMap's granularities and NVML v2 queries as used: R525 and later. */
#define DRIVER_MAJOR_MIN 525
#define NOFILE_MIN       1024
/* With fewer the daemon runs out of descriptors once a few large models are shared between
 * processes. */
#define DAEMON_NOFILE_MIN 20000

static void say(struct sl_finding *f, enum sl_level level, const char *format, ...)
	SL_PRINTF(3, 4);
static void say(struct sl_finding *f, enum sl_level level, const char *format, ...)
{
	va_list args;

	f->level = level;
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

static void advise(struct sl_finding *f, const char *remedy)
{
	snprintf(f->remedy, sizeof(f->remedy), "%s", remedy);
}

/* For facts that only the daemon knows. */
static void say_unknown(struct sl_finding *f)
{
	say(f, SL_LEVEL_UNKNOWN, "not known without the daemon");
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void check_library(const struct sl_facts *facts, struct sl_finding *f)
{
	if (!facts->has_library) {
		say(f, SL_LEVEL_FAIL, "%s", facts->library_error.text);
		return;
	}
	if (!facts->library_loads) {
		say(f, SL_LEVEL_FAIL, "%.200s does not load: %s", facts->library,
			facts->library_trouble);
		advise(f, "use a build of Sluice for this machine");
		if (facts->glibc_needed > facts->glibc_present)
			snprintf(f->remedy, sizeof(f->remedy),
				"it needs glibc 2.%u and this is 2.%u: build Sluice "
				"here, or on an "
				"older system",
				facts->glibc_needed, facts->glibc_present);
		return;
	}
	say(f, SL_LEVEL_OK, "%.200s loads; it needs glibc 2.%u, this is 2.%u",
		facts->library, facts->glibc_needed, facts->glibc_present);
}

static void say_journal(const struct sl_msg_status_row *row, struct sl_finding *f)
{
	char folder[sizeof(row->journal)];

	memcpy(folder, row->journal, sizeof(folder));
	sl_text_tame(folder);
	say(f, SL_LEVEL_FAIL,
		"sluiced cannot write its journal in %s (%s): workloads and changes "
		"since then are lost when it restarts",
		folder, strerror((int)row->journal_error));
	snprintf(f->remedy, sizeof(f->remedy),
		"make room in %s, or give the folder back to sluiced's user; it tries "
		"again every second",
		folder);
}

static void check_daemon(const struct sl_facts *facts, struct sl_finding *f)
{
	const struct sl_msg_status_row *row;

	if (facts->daemon_status) {
		say(f, SL_LEVEL_FAIL, "%s", facts->daemon_error.text);
		return;
	}
	if (!facts->status.count) {
		say(f, SL_LEVEL_FAIL, "the daemon at %s does not report its state",
			facts->status.socket);
		advise(f, "look at its log and restart it");
		return;
	}
	row = &facts->status.all[0].status_row;
	if (row->journal_error) {
		say_journal(row, f);
	} else if (strcmp(row->version, SL_VERSION)) {
		say(f, SL_LEVEL_WARN, "sluiced %s at %s, and this is sluice %s",
			row->version, facts->status.socket, SL_VERSION);
		advise(f, "restart the daemon from this installation; running programs "
			  "survive that");
	} else if (row->recovering) {
		say(f, SL_LEVEL_WARN,
			"sluiced at %s has just started and waits for programs to report",
			facts->status.socket);
		advise(f, "ask again in a few seconds");
	} else {
		say(f, SL_LEVEL_OK,
			"sluiced %s at %s, protocol %u, process %u, %u workload%s, %u "
			"client%s",
			row->version, facts->status.socket, SL_PROTOCOL_VERSION, row->pid,
			row->workloads, plural(row->workloads), row->clients,
			plural(row->clients));
	}
}

static void check_nvml(const struct sl_facts *facts, struct sl_finding *f)
{
	const struct sl_msg_status_row *row =
		facts->status.count ? &facts->status.all[0].status_row : NULL;

	switch (facts->nvml.outcome) {
	case SL_NVML_OK:
		if (row && !row->nvml_ok) {
			say(f, SL_LEVEL_FAIL,
				"NVML works here, but not in the daemon: %s",
				row->nvml_text);
			advise(f, "restart the daemon; if it runs in a container, give "
				  "it the driver");
			return;
		}
		say(f, SL_LEVEL_OK, "NVML works and shows %u GPU%s", facts->nvml.count,
			plural(facts->nvml.count));
		return;
	case SL_NVML_NO_LIBRARY:
		say(f, SL_LEVEL_FAIL, "NVML is not installed: %s", facts->nvml.text);
		advise(f, "install NVIDIA's driver; without a GPU, try 'sluice softgpu "
			  "-- CMD'");
		return;
	case SL_NVML_HANGS:
		say(f, SL_LEVEL_FAIL, "NVML hangs: %s", facts->nvml.text);
		advise(f, "the driver is in trouble: see dmesg for Xid lines; reset the "
			  "GPU or reboot");
		return;
	case SL_NVML_ERROR: break;
	}
	say(f, SL_LEVEL_FAIL, "NVML does not work: %s", facts->nvml.text);
	advise(f, "compare the driver in the kernel (/proc/driver/nvidia/version) with "
		  "the library's, "
		  "and reboot after an update");
}

static void check_driver(const struct sl_facts *facts, struct sl_finding *f)
{
	unsigned long major = strtoul(facts->nvml.driver, NULL, 10);

	if (facts->nvml.outcome != SL_NVML_OK) {
		say(f, SL_LEVEL_UNKNOWN, "not known without NVML");
		return;
	}
	if (facts->software) {
		say(f, SL_LEVEL_OK, "the software GPU stands in for driver %s",
			facts->nvml.driver);
		return;
	}
	if (major < DRIVER_MAJOR_MIN) {
		say(f, SL_LEVEL_FAIL, "driver %s is older than R%d", facts->nvml.driver,
			DRIVER_MAJOR_MIN);
		advise(f, "update NVIDIA's driver to R525 or later");
		return;
	}
	say(f, SL_LEVEL_OK, "driver %s", facts->nvml.driver);
}

static void check_devices(const struct sl_facts *facts, struct sl_finding *f)
{
	if (facts->software) {
		say(f, SL_LEVEL_OK, "the software GPU needs no device files");
	} else if (facts->devices == SL_DEVICES_OK) {
		say(f, SL_LEVEL_OK, "/dev/nvidia* can be used");
	} else if (facts->devices == SL_DEVICES_DENIED) {
		say(f, SL_LEVEL_FAIL, "no permission for %s", facts->device_denied);
		advise(f, "join the group that owns it (often video or render), and log "
			  "in anew");
	} else {
		say(f, SL_LEVEL_FAIL, "there are no /dev/nvidia* files");
		advise(f, "load the driver (nvidia-smi does it); in a container, start "
			  "it with GPUs "
			  "(docker run --gpus all)");
	}
}

static size_t count_gpus(const struct sl_facts *facts, uint32_t condition)
{
	size_t n = 0;

	for (size_t i = 0; i < facts->gpus.count; i++)
		n += !!(facts->gpus.all[i].gpu_row.condition & condition);
	return n;
}

/* STATUS explains the first GPU that is lost or left out: "NAME at PCI is lost: Xid 79, ...". */
static void say_lost(const struct sl_facts *facts, size_t lost, struct sl_finding *f)
{
	static const char mark[] = " is lost: ";
	const char *text =
		facts->status.count ? facts->status.all[0].status_row.nvml_text : "";
	const char *why = strstr(text, mark);

	if (why)
		say(f, SL_LEVEL_FAIL, "%zu of %zu GPU%s %s lost (%.*s: %s)", lost,
			facts->gpus.count, plural(facts->gpus.count),
			lost == 1 ? "is" : "are", (int)(why - text), text,
			why + strlen(mark));
	else
		say(f, SL_LEVEL_FAIL, "%zu of %zu GPU%s %s lost", lost, facts->gpus.count,
			plural(facts->gpus.count), lost == 1 ? "is" : "are");
	advise(f, "restart the programs on it; new ones are not placed there. See dmesg "
		  "for Xid lines, and reset it (nvidia-smi -r -i N, once nothing uses "
		  "it) or restart the machine");
}

static void say_degraded(
	const struct sl_facts *facts, size_t degraded, struct sl_finding *f)
{
	uint64_t unmanaged = 0;

	for (size_t i = 0; i < facts->gpus.count; i++)
		if (facts->gpus.all[i].gpu_row.condition & SL_GPU_DEGRADED)
			unmanaged += facts->gpus.all[i].gpu_row.unmanaged_bytes;
	say(f, SL_LEVEL_WARN,
		"%zu of %zu GPU%s %s degraded: requests plus memory that cannot be moved "
		"exceed what it can share",
		degraded, facts->gpus.count, plural(facts->gpus.count),
		degraded == 1 ? "is" : "are");
	advise(f, unmanaged
			  ? "see UNMANAGED in 'sluice gpus'; stop programs that use the "
			    "GPU without sluice run"
			  : "programs allocated memory that Sluice only measures "
			    "(contexts, pools: HIDDEN in 'sluice gpus'); it clears when "
			    "one of them ends, and 'sluice events' says so");
}

static void say_managed(const struct sl_facts *facts, struct sl_finding *f)
{
	size_t managed = facts->gpus.count;
	uint64_t unmanaged = 0;
	char text[32];

	for (size_t i = 0; i < managed; i++)
		unmanaged += facts->gpus.all[i].gpu_row.unmanaged_bytes;
	say(f, SL_LEVEL_OK, "the daemon manages %zu GPU%s", managed, plural(managed));
	if (!unmanaged)
		return;
	say(f, SL_LEVEL_WARN,
		"the daemon manages %zu GPU%s; programs outside Sluice use %s "
		"(UNMANAGED in 'sluice gpus')",
		managed, plural(managed), sl_bytes_format(unmanaged, text, sizeof(text)));
	advise(f, "they take no turns, and their memory stays on the GPU: start them "
		  "with sluice run");
}

static void say_reserve(
	const struct sl_facts *facts, size_t reserve, struct sl_finding *f)
{
	say(f, SL_LEVEL_WARN,
		"context_reserve is more than %zu of %zu GPU%s %s, and is not used there",
		reserve, facts->gpus.count, plural(facts->gpus.count),
		reserve == 1 ? "has" : "have");
	advise(f, "write a smaller one, or auto, in sluiced.conf(5); the daemon's log "
		  "names the GPU");
}

static void check_gpus(const struct sl_facts *facts, struct sl_finding *f)
{
	size_t managed = facts->gpus.count, lost = count_gpus(facts, SL_GPU_LOST);
	size_t degraded = count_gpus(facts, SL_GPU_DEGRADED);

	if (facts->daemon_status) {
		say_unknown(f);
	} else if (!managed) {
		say(f, SL_LEVEL_FAIL, "the daemon manages no GPU");
		advise(f, "see its log for why each was left out, and 'gpus' in "
			  "sluiced.conf(5)");
	} else if (lost) {
		say_lost(facts, lost, f);
	} else if (degraded) {
		say_degraded(facts, degraded, f);
	} else if (count_gpus(facts, SL_GPU_RESERVE)) {
		say_reserve(facts, count_gpus(facts, SL_GPU_RESERVE), f);
	} else if (facts->nvml.outcome == SL_NVML_OK && managed < facts->nvml.count) {
		say(f, SL_LEVEL_WARN, "the daemon manages %zu of %u GPUs", managed,
			facts->nvml.count);
		advise(f, "see its log for why others were left out, and 'gpus' in "
			  "sluiced.conf(5)");
	} else {
		say_managed(facts, f);
	}
}

static void check_modes(const struct sl_facts *facts, struct sl_finding *f)
{
	for (unsigned int i = 0; i < facts->nvml.count; i++) {
		const struct sl_nvml_gpu *gpu = &facts->nvml.gpus[i];

		if (gpu->mig == 1) {
			say(f, SL_LEVEL_FAIL,
				"GPU %u (%s) is in MIG mode, which is not shared", i,
				gpu->uuid);
			advise(f, "turn MIG off (nvidia-smi -i N -mig 0), or leave that "
				  "GPU out");
			return;
		}
		if (gpu->compute_mode > NVML_COMPUTEMODE_DEFAULT) {
			say(f, SL_LEVEL_FAIL,
				"GPU %u (%s) is in compute mode %d: not more than one "
				"program may use it",
				i, gpu->uuid, gpu->compute_mode);
			advise(f, "set the default mode: nvidia-smi -i N -c DEFAULT");
			return;
		}
	}
	if (facts->has_mps) {
		say(f, SL_LEVEL_WARN,
			"an MPS daemon seems to run; its clients are not shared");
		advise(f, "stop it: echo quit | nvidia-cuda-mps-control");
		return;
	}
	if (facts->nvml.outcome != SL_NVML_OK)
		say(f, SL_LEVEL_UNKNOWN, "not known without NVML");
	else
		say(f, SL_LEVEL_OK, "no MIG, exclusive mode or MPS in the way");
}

/* Bytes of the pool that are in use or promised: evicted bytes, the lending reserve, and the slack
 * that exchanges need. */
static uint64_t pool_taken(const struct sl_msg_pool_row *pool)
{
	return pool->evicted_bytes + pool->lent_bytes + pool->slack_bytes;
}

/* The pool is healthy: says what uses it. */
static void say_pool(const struct sl_facts *facts, const struct sl_msg_pool_row *pool,
	struct sl_finding *f)
{
	char all[32], evicted[32], copies[32], lent[32], huge[32], left[32];

	say(f, SL_LEVEL_OK,
		"%s of host memory for swapping: %s evicted, %s allocated ahead or "
		"copies of memory on the GPUs, %s reserved for lent memory; %s in huge "
		"pages; the host has %s left%s%s",
		sl_bytes_format(pool->pool_bytes, all, sizeof(all)),
		sl_bytes_format(pool->evicted_bytes, evicted, sizeof(evicted)),
		sl_bytes_format(pool->copies_bytes, copies, sizeof(copies)),
		sl_bytes_format(pool->lent_bytes, lent, sizeof(lent)),
		sl_bytes_format(pool->huge_bytes, huge, sizeof(huge)),
		sl_bytes_format(pool->available_bytes, left, sizeof(left)),
		facts->numa[0] ? "; " : "", facts->numa);
}

static void say_no_pool(const struct sl_msg_pool_row *pool, struct sl_finding *f)
{
	if (pool->pool_bytes) {
		say(f, SL_LEVEL_WARN,
			"nothing is swapped: 'swap' is not among the resolvers");
		advise(f, "to move memory to the host instead of waiting: resolvers: "
			  "swap wait in sluiced.conf(5)");
		return;
	}
	say(f, SL_LEVEL_WARN,
		"no host memory is set aside (host_memory is 0), so nothing is swapped: "
		"workloads that do not fit wait");
	advise(f, "leave host_memory out of sluiced.conf(5) for half of the free memory, "
		  "or set it, and restart sluiced");
}

static void check_host(const struct sl_facts *facts, struct sl_finding *f)
{
	const struct sl_msg_pool_row *pool =
		facts->pool.count ? &facts->pool.all[0].pool_row : NULL;
	char a[32], b[32], c[32];
	uint64_t unmade;

	if (!pool) {
		say_unknown(f);
		return;
	}
	unmade = pool->pool_bytes - (pool->made_bytes < pool->pool_bytes
						    ? pool->made_bytes
						    : pool->pool_bytes);
	if (!pool->swap_on || !pool->pool_bytes) {
		say_no_pool(pool, f);
	} else if (pool->available_bytes < unmade) {
		say(f, SL_LEVEL_WARN,
			"host memory is short: %s are set aside for swapping, %s of them "
			"still unused, and the host has only %s left",
			sl_bytes_format(pool->pool_bytes, a, sizeof(a)),
			sl_bytes_format(unmade, b, sizeof(b)),
			sl_bytes_format(pool->available_bytes, c, sizeof(c)));
		advise(f,
			"lower host_memory in sluiced.conf(5), or end programs that use "
			"host memory; until then less can be swapped than configured");
	} else if (pool_taken(pool) >= pool->pool_bytes) {
		say(f, SL_LEVEL_WARN,
			"the host memory for swapping is full: %s, of which %s are "
			"evicted and %s reserved for lent memory; the next resolver "
			"decides",
			sl_bytes_format(pool->pool_bytes, a, sizeof(a)),
			sl_bytes_format(pool->evicted_bytes, b, sizeof(b)),
			sl_bytes_format(pool->lent_bytes, c, sizeof(c)));
		advise(f, "raise host_memory in sluiced.conf(5), or end or resume "
			  "workloads that 'sluice ps' shows as parked or warm");
	} else {
		say_pool(facts, pool, f);
		if (!pool->huge_bytes && !facts->huge_free_bytes)
			advise(f, "huge pages make swapping faster: sysctl "
				  "vm.nr_hugepages=N sets N of 2 MiB aside");
	}
}

/* The daemon's text has the remedy behind "; ". */
static void say_part(const struct sl_msg_part_row *row, struct sl_finding *f)
{
	char text[sizeof(row->text)];
	char *remedy;

	memcpy(text, row->text, sizeof(text));
	sl_text_tame(text);
	remedy = strstr(text, "; ");
	if (remedy)
		*remedy = '\0';
	say(f, row->health == SL_HEALTH_BROKEN ? SL_LEVEL_FAIL : SL_LEVEL_WARN, "%.760s",
		text);
	if (remedy)
		advise(f, remedy + 2);
}

/* what: the noun for the count of rows in that file, if it is healthy. */
static void check_part(const struct sl_facts *facts, struct sl_finding *f,
	enum sl_wire_part part, const char *what)
{
	char path[sizeof(((struct sl_msg_part_row *)NULL)->path)];

	for (size_t i = 0; i < facts->parts.count; i++) {
		const struct sl_msg_part_row *row = &facts->parts.all[i].part_row;

		if (row->part != part)
			continue;
		if (row->health != SL_HEALTH_GOOD) {
			say_part(row, f);
			return;
		}
		memcpy(path, row->path, sizeof(path));
		sl_text_tame(path);
		if (part == SL_PART_SHIM)
			say(f, SL_LEVEL_OK, "%s starts %s", path, what);
		else if (part == SL_PART_PAGE || part == SL_PART_METRICS)
			say(f, SL_LEVEL_OK, "%s%s", path[0] ? "served at " : "not served",
				path);
		else
			say(f, SL_LEVEL_OK, "%llu %s%s in %s",
				(unsigned long long)row->count, what, plural(row->count),
				path);
		return;
	}
	say_unknown(f);
}

/* Counts each workload once, though it has a row per GPU. */
static void check_waits(const struct sl_facts *facts, struct sl_finding *f)
{
	const struct sl_msg_use_row *first = NULL;
	uint64_t last = 0;
	size_t n = 0;
	char name[64];

	if (facts->daemon_status) {
		say_unknown(f);
		return;
	}
	for (size_t i = 0; i < facts->uses.count; i++) {
		const struct sl_msg_use_row *row = &facts->uses.all[i].use_row;

		if (row->longest_wait_ms != UINT64_MAX || row->workload == last)
			continue;
		first = first ? first : row;
		last = row->workload;
		n++;
	}
	if (!first) {
		say(f, SL_LEVEL_OK, "every workload's wait for its GPU has a bound");
		return;
	}
	snprintf(name, sizeof(name), "%s", first->name);
	sl_text_tame(name);
	say(f, SL_LEVEL_WARN, "%zu workload%s may wait for %s GPU without end: %s%s", n,
		plural(n), n == 1 ? "its" : "their", name, n == 1 ? "" : " and others");
	advise(f, "'sluice why NAME' says what is in the way and what to do");
}

static void check_shim(const struct sl_facts *facts, struct sl_finding *f)
{
	check_part(facts, f, SL_PART_SHIM, "jobs");
}

static void check_projects(const struct sl_facts *facts, struct sl_finding *f)
{
	check_part(facts, f, SL_PART_PROJECTS, "project");
}

static void check_jobs(const struct sl_facts *facts, struct sl_finding *f)
{
	check_part(facts, f, SL_PART_JOBS, "job");
}

static void check_history(const struct sl_facts *facts, struct sl_finding *f)
{
	for (size_t i = 0; i < facts->parts.count; i++) {
		const struct sl_msg_part_row *row = &facts->parts.all[i].part_row;

		if (row->part == SL_PART_HISTORY && row->health == SL_HEALTH_GOOD &&
			!row->path[0]) {
			say(f, SL_LEVEL_OK, "none is written (history: no)");
			return;
		}
	}
	check_part(facts, f, SL_PART_HISTORY, "row");
}

static void check_page(const struct sl_facts *facts, struct sl_finding *f)
{
	check_part(facts, f, SL_PART_PAGE, "page");
}

static void check_metrics(const struct sl_facts *facts, struct sl_finding *f)
{
	check_part(facts, f, SL_PART_METRICS, "metrics");
}

static void check_kernel(const struct sl_facts *facts, struct sl_finding *f)
{
	if (!facts->has_pidfd) {
		say(f, SL_LEVEL_FAIL,
			"the kernel has no pidfd_open, which the daemon needs");
		advise(f, "use Linux 5.3 or later; in a container, allow the call in its "
			  "seccomp profile");
	} else if (!facts->has_membarrier) {
		say(f, SL_LEVEL_WARN,
			"membarrier is refused: each launch costs some nanoseconds more");
		advise(f, "allow membarrier in the container's seccomp profile");
	} else {
		say(f, SL_LEVEL_OK, "pidfd_open and membarrier work");
	}
}

static const char *limit_text(uint64_t value, bool bytes, char *buf, size_t size)
{
	if (value == UINT64_MAX)
		snprintf(buf, size, "unlimited");
	else if (bytes)
		sl_bytes_format(value, buf, size);
	else
		snprintf(buf, size, "%llu", (unsigned long long)value);
	return buf;
}

static void check_limits(const struct sl_facts *facts, struct sl_finding *f)
{
	char files[32], locked[32];

	limit_text(facts->nofile, false, files, sizeof(files));
	limit_text(facts->memlock_bytes, true, locked, sizeof(locked));
	if (facts->nofile < NOFILE_MIN) {
		say(f, SL_LEVEL_WARN,
			"only %s descriptors per process; a daemon needs two per client",
			files);
		advise(f, "raise it: ulimit -n 4096");
		return;
	}
	if (facts->daemon_nofile && facts->daemon_nofile < DAEMON_NOFILE_MIN) {
		say(f, SL_LEVEL_WARN,
			"sluiced may have only %s files open; GPU memory that processes "
			"share with each other costs it one for each chunk",
			limit_text(facts->daemon_nofile, false, files, sizeof(files)));
		advise(f, "LimitNOFILE=65536 in sluiced.service, or `ulimit -Hn 65536` "
			  "before sluiced is started");
		return;
	}
	say(f, SL_LEVEL_OK, "%s descriptors, %s of locked memory", files, locked);
}

static void check_cgroup(const struct sl_facts *facts, struct sl_finding *f)
{
	char max[32];

	if (!facts->cgroup_v2) {
		say(f, SL_LEVEL_OK, "no cgroup v2; Sluice works without it");
		return;
	}
	limit_text(facts->cgroup_memory_max_bytes, true, max, sizeof(max));
	say(f, SL_LEVEL_OK, "cgroup v2, host memory here: %s", max);
}

/* Libraries of other sharing layers that hook the same calls. */
static const char *const rivals[] = {"libvgpu.so", "libnvshare.so", "libcuda-control.so",
	"libsoftmig.so", "libhami", NULL};

static void check_preload(const struct sl_facts *facts, struct sl_finding *f)
{
	const char *preload = facts->preload ? facts->preload : "";

	for (size_t i = 0; rivals[i]; i++)
		if (strstr(preload, rivals[i])) {
			say(f, SL_LEVEL_FAIL,
				"LD_PRELOAD has %s, which hooks the calls Sluice hooks",
				rivals[i]);
			advise(f, "take it out of LD_PRELOAD; two sharing layers do not "
				  "go together");
			return;
		}
	if (strstr(preload, "libsluice.so")) {
		say(f, SL_LEVEL_OK, "this shell is itself inside sluice run");
	} else if (facts->system_preload) {
		say(f, SL_LEVEL_WARN,
			"/etc/ld.so.preload loads libraries into every program");
		advise(f, "make sure that none of them hooks CUDA");
	} else {
		say(f, SL_LEVEL_OK,
			preload[0] ? "LD_PRELOAD is set and is kept behind libsluice.so"
				   : "LD_PRELOAD is not set");
	}
}

static void check_container(const struct sl_facts *facts, struct sl_finding *f)
{
	if (!facts->container[0]) {
		say(f, SL_LEVEL_OK, "not in a container");
	} else if (facts->daemon_status == SL_EXIT_NO_DAEMON) {
		say(f, SL_LEVEL_WARN,
			"in a container (%s), and no daemon is seen from here",
			facts->container);
		advise(f, "mount the folder of the daemon's socket (-v "
			  "/run/sluice:/run/sluice), or "
			  "start a daemon inside");
	} else {
		say(f, SL_LEVEL_OK, "in a container (%s)", facts->container);
	}
}

static void check_software(const struct sl_facts *facts, struct sl_finding *f)
{
	say(f, SL_LEVEL_OK,
		facts->software ? "software GPUs are in use: figures say nothing about "
				  "real ones"
				: "no software GPU is in use");
}

const struct sl_check sl_doctor_checks[] = {
#define SL_CHECK(name) {#name, check_##name},
#include "cli/doctor/checks.def"
#undef SL_CHECK
	{NULL, NULL},
};
