/*
 * doctor - the checks behind `sluice doctor`
 *
 * sl_doctor_gather collects facts once, and checks only judge them, so tests can judge invented
 * machines. One thread; changes nothing on the machine.
 */
#ifndef SL_CLI_DOCTOR_DOCTOR_H
#define SL_CLI_DOCTOR_DOCTOR_H

#include "base/error.h"
#include "base/paths.h"
#include "cli/conn/nvml.h"
#include "cli/conn/rows.h"

/* UNKNOWN: a source is missing; text names it. */
enum sl_level {
	SL_LEVEL_OK = 0,
	SL_LEVEL_WARN,
	SL_LEVEL_FAIL,
	SL_LEVEL_UNKNOWN,
	SL_LEVELS
};

struct sl_finding {
	enum sl_level level;
	char text[768];
	char remedy[512]; /* "" if there is nothing to do */
};

enum { SL_DEVICES_NONE = 0, SL_DEVICES_DENIED, SL_DEVICES_OK };

/* The facts of this machine. Zero means absent or unknown. */
struct sl_facts {
	bool has_library;
	char library[SL_PATH_MAX];
	struct sl_error library_error;
	bool library_loads;
	char library_trouble[256];  /* the loader's message */
	unsigned int glibc_needed;  /* minor: 17 for 2.17; 0 unknown */
	unsigned int glibc_present; /* minor */
	int daemon_status;          /* enum sl_exit of the attempt to ask it */
	struct sl_error daemon_error;
	/* Valid with daemon_status 0. */
	struct sl_rows status, gpus, uses, pool, parts;
	uint64_t huge_free_bytes; /* in unused huge pages */
	char numa[128];           /* NUMA nodes of the GPUs; "" if there is only one */
	struct sl_nvml_report nvml;
	bool software; /* software GPUs are in use here */
	int devices;   /* SL_DEVICES_* */
	char device_denied[64];
	bool has_mps;
	bool has_membarrier, has_pidfd;
	uint64_t nofile, memlock_bytes; /* UINT64_MAX: unlimited */
	uint64_t daemon_nofile;         /* limit of the daemon's open files; 0: unknown */
	bool cgroup_v2;
	uint64_t cgroup_memory_max_bytes; /* UINT64_MAX: unlimited or unknown */
	const char *preload;              /* LD_PRELOAD, or NULL */
	bool system_preload;              /* /etc/ld.so.preload has entries */
	char container[32];               /* "docker", "podman", ...; "" if none seen */
};

void sl_doctor_gather(struct sl_facts *facts);
void sl_doctor_facts_fini(struct sl_facts *facts);

typedef void (*sl_check_fn)(const struct sl_facts *facts, struct sl_finding *finding);
struct sl_check {
	const char *name;
	sl_check_fn fn;
};
/* Ends with a row without name. */
extern const struct sl_check sl_doctor_checks[];

#endif
