/*
 * paths - the places of the socket, the state and the helper files
 *
 * The socket is SLUICE_SOCKET if set. Otherwise it is /run/sluice/sluiced.sock for root. Other
 * users get $XDG_RUNTIME_DIR/sluice/sluiced.sock if their own daemon's socket exists there, or if
 * no system daemon's socket exists; else the system daemon's. Without XDG_RUNTIME_DIR,
 * /tmp/sluice-UID/ takes the place of its folder.
 */
#ifndef SL_BASE_PATHS_H
#define SL_BASE_PATHS_H

#include "base/error.h"

#define SL_PATH_MAX 4096
/* Size of sockaddr_un.sun_path, terminator included. */
#define SL_SOCKET_PATH_MAX 108

/* Folder of the system daemon. */
#define SL_PATHS_SYSTEM_DIR    "/run/sluice"
#define SL_PATHS_SYSTEM_CONFIG "/etc/sluice/sluiced.conf"
#define SL_PATHS_SYSTEM_SOCKET SL_PATHS_SYSTEM_DIR "/sluiced.sock"

/* In a container: the folder with its workload's socket, the library, and the file by which its
 * loader finds that. The container's user and environment do not change them. */
#define SL_PATHS_CONTAINER         "/run/sluice"
#define SL_PATHS_CONTAINER_LIBRARY "/opt/sluice/libsluice.so"
#define SL_PATHS_CONTAINER_PRELOAD "/etc/ld.so.preload"

enum { SL_PATHS_OK = 0, SL_PATHS_BAD /* err names the path and the remedy */ };

/* The socket to connect to, as an absolute path of at most 107 bytes. */
SL_MUST_CHECK int sl_paths_socket(char *buf, size_t size, struct sl_error *err);
/* The daemon's state folder by the same rule: SLUICE_STATE, else /run/sluice or the user's own. */
SL_MUST_CHECK int sl_paths_state_dir(char *buf, size_t size, struct sl_error *err);
/* The default configuration of sluiced: /etc/sluice/sluiced.conf for root,
 * $XDG_CONFIG_HOME/sluice/sluiced.conf (or ~/.config/...) for others. It may be absent. */
SL_MUST_CHECK int sl_paths_config(char *buf, size_t size, struct sl_error *err);
/* The folder of the running program. libsluice.so and sluice-softgpu are searched beside it (build
 * folder) and then under ../lib/sluice (installed). Negative errno or 0. */
SL_MUST_CHECK int sl_paths_program_dir(char *buf, size_t size);

#endif
