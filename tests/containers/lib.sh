# shellcheck shell=sh
# containers/lib - what the tests of containers share; tests/system/lib.sh comes with it. Root filesystems are made of this
# machine's own programs, since no registry is at hand. Skips where podman starts no container.
# shellcheck disable=SC2034 # some variables are for the tests
. "$(dirname "$0")/../system/lib.sh"
software_only "the root filesystems have its libraries alone"
command -v podman >/dev/null || skip "podman is not installed (Debian: apt install podman runc)"
# A container needs no network, no systemd and no rights that a container of the tests' own may lack.
PODMAN="podman --root $T/podman --runroot $T/podman-run --tmpdir $T/podman-tmp --storage-driver vfs --cgroup-manager cgroupfs --events-backend none"
PODMAN="$PODMAN --runtime $(command -v runc || command -v crun)"
PLAIN="--network none --ulimit nofile=20000:20000 --ulimit nproc=4096:4096"
# take DIR PROGRAM...: copies programs and what they are linked with into a root filesystem.
take() {
	take_to=$1
	shift
	mkdir -p "$take_to/bin" "$take_to/etc" "$take_to/proc" "$take_to/tmp" "$take_to/dev" "$take_to/run"
	for take_program in "$@"; do
		cp -L "$take_program" "$take_to/bin/"
		for take_library in $(ldd "$take_program" 2>/dev/null | grep -o '/[^ ]*'); do
			mkdir -p "$take_to${take_library%/*}"
			[ -e "$take_to$take_library" ] || cp -L "$take_library" "$take_to$take_library"
		done
	done
}
ROOT=$T/root
take "$ROOT" /bin/sh /bin/cat /bin/sleep /usr/bin/env /usr/bin/id "$P/tenant"
# shellcheck disable=SC2086 # lists of words
timeout 60 $PODMAN run --rm $PLAIN --rootfs "$ROOT" /bin/sh -c 'exit 42' >"$T/try" 2>&1
[ $? = 42 ] || skip "podman starts no container here: $(tail -n 1 "$T/try")"
# What a killed conmon leaves mounted.
pod_end() {
	# shellcheck disable=SC2086
	timeout 60 $PODMAN rm -af -t 0 >/dev/null 2>&1
	grep -o " $T/podman[^ ]*" /proc/self/mounts | xargs -r umount 2>/dev/null
}
trap 'pod_end; clean_up' EXIT
# Processes at the driver, not in our own books.
at_driver() { "$P/nvml-view" | json -n what=process; }
at_driver_is() { [ "$(at_driver)" = "$1" ]; }
there() { "$B/sluice" ps --json | grep -q "\"name\": *\"$1\""; }
is_over() { ! there "$1"; }
# The container that podman started under this name; its process 1 as the host counts it.
init_of() { $PODMAN inspect -f '{{.State.Pid}}' "$1"; }
