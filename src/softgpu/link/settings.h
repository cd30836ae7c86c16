/*
 * settings - the settings of a box: the table, and variables in the environment of its programs
 */
#ifndef SL_SOFTGPU_LINK_SETTINGS_H
#define SL_SOFTGPU_LINK_SETTINGS_H

#include "base/sl.h"

#define SL_SOFTGPU_GPUS_MAX    16
#define SL_SOFTGPU_MODEL_BYTES 32 /* of a model's name, with its end */
#define SL_SOFTGPU_ENV         "SLUICE_SOFTGPU"
/* Calls that fail or hang, see sl_softgpu_config.faults; may also be set for one program alone. */
#define SL_SOFTGPU_ENV_FAULTS "SLUICE_SOFTGPU_FAULTS"
/* A file with such a plan, for one program: read again when another file gets its name; fault.c. */
#define SL_SOFTGPU_ENV_FAULTS_FILE "SLUICE_SOFTGPU_FAULTS_FILE"

/* The CUDA version of the driver, as 1000 * major + 10 * minor; also for one program alone. */
#define SL_SOFTGPU_ENV_CUDA    "SLUICE_SOFTGPU_CUDA"
#define SL_SOFTGPU_CUDA_PRESET 13000

/*
 * Settings, one row each: X(field, key, type-free default, lowest, highest, help).
 * All are uint64_t. A size of SL_SOFTGPU_AUTO follows from the memory size, as the help says.
 */
#define SL_SOFTGPU_AUTO UINT64_MAX
#define SL_SOFTGPU_SETTINGS(X)                                                         \
	X(gpus, "gpus", 1, 1, SL_SOFTGPU_GPUS_MAX, "Number of GPUs.")                  \
	X(memory_bytes, "memory", 16 * SL_GIB, 64 * SL_MIB, 1024 * SL_GIB,             \
		"Memory of each GPU.")                                                 \
	X(h2d_bytes_per_s, "h2d", 0, 0, UINT64_MAX,                                    \
		"Speed of copies to the GPU; 0: no limit.")                            \
	X(d2h_bytes_per_s, "d2h", 0, 0, UINT64_MAX,                                    \
		"Speed of copies from the GPU; 0: no limit.")                          \
	X(duplex_pct, "duplex", 50, 1, 100,                                            \
		"Share of its speed, in %, the way in keeps beside the way out.")      \
	X(pageable_pct, "pageable", 50, 1, 100,                                        \
		"Share of a link's speed, in %, for host memory that is not pinned.")  \
	X(pin_us, "pin-us", 0, 0, 1000000, "Time added to the pinning of each MiB.")   \
	X(drop_pins, "drop-pins", 0, 0, 1,                                             \
		"1: a checkpoint ends registrations of host memory; 0: they stay.")    \
	X(teardown_ms, "teardown-ms", 0, 0, 600000,                                    \
		"Time a dead process keeps its memory.")                               \
	X(nvml_lag_ms, "nvml-lag-ms", 0, 0, 600000, "Age of NVML's memory figures.")   \
	X(process_use, "process-use", 1, 0, 1,                                         \
		"1: NVML tells what each process does; 0: it does not.")               \
	X(reserve_bytes, "reserve", SL_SOFTGPU_AUTO, 0, UINT64_MAX,                    \
		"Memory the driver keeps; memory/128, at most 512 MiB.")               \
	X(context_bytes, "context", SL_SOFTGPU_AUTO, 0, UINT64_MAX,                    \
		"Hidden bytes of a context; memory/64, 8 to 256 MiB.")                 \
	X(module_bytes, "module", 2 * SL_MIB, 0, UINT64_MAX,                           \
		"Hidden bytes of a loaded module.")                                    \
	X(launch_bytes, "launch", SL_SOFTGPU_AUTO, 0, UINT64_MAX,                      \
		"Hidden bytes of a context's first launch; memory/512, 2 to 64 MiB.")  \
	X(create_us, "create-us", 0, 0, 1000000,                                       \
		"Time added to each creation of a handle.")                            \
	X(map_us, "map-us", 0, 0, 1000000,                                             \
		"Time added to each cuMemSetAccess and cuMemUnmap.")                   \
	X(release_us, "release-us", 0, 0, 1000000, "Time added to each handle's end.") \
	X(queue_ops, "queue", 1024, 1, 1000000,                                        \
		"Operations a stream holds before calls block.")                       \
	X(engine_us, "engine-us", 0, 0, 1000000,                                       \
		"Slice of the programs' kernels on a GPU's engine; 0: side by side.")  \
	X(deny_mib, "deny-mib", 0, 0, SL_GIB,                                          \
		"Memory that counts as free and yet cannot be had, in MiB.")           \
	X(cuda_version, "cuda", SL_SOFTGPU_CUDA_PRESET, 12000, 13050,                  \
		"Version of CUDA the driver has: 13000, 12040, ...")                   \
	X(stale, "stale", 1, 0, 1, "1: created memory holds rubbish; 0: zeros.")

#define SL_SOFTGPU_COUNT(field, key, preset, lowest, highest, help) +1

struct sl_softgpu_config {
#define SL_SOFTGPU_FIELD(field, key, preset, lowest, highest, help) uint64_t field;
	SL_SOFTGPU_SETTINGS(SL_SOFTGPU_FIELD)
#undef SL_SOFTGPU_FIELD
	/*
	 * Fault plan for all programs in the box, or NULL: "call:N=what" joined by commas. what is
	 * an error's name without CUDA_ERROR_ in any case ("out_of_memory", short "oom"), a number,
	 * or "hang". N counts that call in each process from 1; "@N" means every Nth.
	 * "cuMemCreate:3=oom,cuMemMap:@5=unknown,cuMemcpyHtoD_v2:2=hang"
	 */
	const char *faults;
	/* Models of the GPUs, joined by commas, the last one for all further GPUs; or NULL: all
	 * alike. Each is appended to the common name. */
	const char *models;
	bool shared; /* for all users of the machine, not only the own user */
	/* Folder of the libraries and the server, or NULL to search beside this program. */
	const char *folder;
};

#endif
