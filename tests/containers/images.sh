#!/bin/sh
# What containers may be like: users and namespaces of their own, a root that is read-only, an environment that drops all or has a
# library to preload itself, programs of musl and static ones. The limit holds, or the program runs as without Sluice.
# shellcheck disable=SC2086,SC2153 # PODMAN and PLAIN are lists of words
export BOX="--gpus 1 --memory 1GiB --shared" LIMIT=150
. "$(dirname "$0")/lib.sh"
mib=1048576
chmod 711 "$T"
config 'measure_interval: 100ms'
config 'socket_mode: 0666'
daemon_start
contain() { timeout 60 $RUN --name it --request 0 --limit 300MiB -- $PODMAN run --rm $PLAIN "$@"; }
# limited WHAT OPTIONS...: the container's program sees its limit, and more is refused.
limited() {
	limited_what=$1
	shift
	contain "$@" --bytes 250MiB --ms 100 >"$T/in" 2>"$T/in.err"
	check "$limited_what: it ends well" $? = 0
	check "$limited_what: the limit holds" "$(json -l event=held total <"$T/in")" = $((300 * mib))
}
limited "a user of its own" --user 1000:1000 --rootfs "$ROOT" /bin/tenant
limited "a user namespace" --uidmap 0:100000:65536 --gidmap 0:100000:65536 --rootfs "$ROOT" /bin/tenant
limited "the pid namespace of the host" --pid host --rootfs "$ROOT" /bin/tenant
limited "a root that is read-only" --read-only --rootfs "$ROOT" /bin/tenant
limited "an empty environment" --rootfs "$ROOT" /bin/env -i "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" "SLUICE_SOFTGPU=$SLUICE_SOFTGPU" /bin/tenant
printf '#include <unistd.h>\n__attribute__((constructor)) static void hello(void) { (void)!write(2, "preloaded\\n", 10); }\n' >"$T/own.c"
cc -shared -fPIC -o "$ROOT/own.so" "$T/own.c"
limited "an LD_PRELOAD of the image" --env LD_PRELOAD=/own.so --rootfs "$ROOT" /bin/tenant
check_file "an LD_PRELOAD of the image: is preloaded, too" "$T/in.err" '^preloaded$'

# As an image, with the words that podman has for run.
tar -C "$ROOT" -c . | $PODMAN import - deb >"$T/out" 2>&1
timeout 60 $RUN --name it --limit 300MiB -- $PODMAN container run --name again $PLAIN deb /bin/tenant --bytes 250MiB --ms 100 >"$T/in" 2>&1
check "an image: the limit holds" "$(json -l event=held total <"$T/in")" = $((300 * mib))
timeout 60 $PODMAN start -a again >"$T/out" 2>&1
check "a container cannot be started after its workload" $? != 0
check_file "and podman says what is missing" "$T/out" "runs/$(id -u)/[0-9]+.*no such file"

# Rootless, as a user without further numbers, whose workload is of root's daemon.
if [ "$(id -u)" = 0 ]; then
	mkdir -m 700 "$T/home" "$T/home/run"
	cp -a "$ROOT" "$T/home/root"
	chown -R nobody "$T/home"
	# shellcheck disable=SC2016 # for the other shell
	(cd / && timeout 60 runuser -u nobody -- env HOME="$T/home" XDG_RUNTIME_DIR="$T/home/run" $RUN --name it --request 0 --limit 300MiB -- \
		podman --storage-driver vfs --cgroup-manager cgroupfs --events-backend none --runtime "$(command -v runc || command -v crun)" \
		run --rm $PLAIN --rootfs "$T/home/root" /bin/sh -c 'cat /proc/self/uid_map; exec /bin/tenant --bytes 250MiB --ms 100') >"$T/in" 2>"$T/in.err"
	check "rootless: it ends well" $? = 0
	check_file "rootless: in a user namespace" "$T/in" "^ *0 +$(id -u nobody) +1$"
	check "rootless: the limit holds" "$(grep '^{' "$T/in" | json -l event=held total)" = $((300 * mib))
fi

# Programs that the library cannot be loaded into.
printf '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n' >"$T/hello.c"
mkdir -p "$T/scratch"
if cc -static -o "$T/scratch/hello" "$T/hello.c" 2>/dev/null; then
	contain --rootfs "$T/scratch" /hello >"$T/out" 2>"$T/err"
	check "a static program runs" "$?$(cat "$T/out" "$T/err")" = 0hello
fi
if command -v musl-gcc >/dev/null; then
	mkdir -p "$T/musl/lib" "$T/musl/bin"
	musl-gcc -o "$T/musl/bin/hello" "$T/hello.c"
	cp -L /lib/ld-musl-*.so.1 "$T/musl/lib/"
	contain --rootfs "$T/musl" /bin/hello >"$T/out" 2>"$T/err"
	check "a program of musl runs" "$?$(cat "$T/out" "$T/err")" = 0hello
else
	note "no musl-gcc here: not tried with musl"
fi
# What gets past the library is named, with its workload.
contain --env SLUICE_BYPASS=1 --rootfs "$ROOT" /bin/tenant --bytes 400MiB --ms 4000 >"$T/in" 2>&1 &
named() { "$B/sluice" events --json | grep UNMANAGED_OURS | grep -q '"it"'; }
until_true 20 named
check "a process past the library is named" $? = 0
wait $!

# What sluice run cannot do.
mkdir "$T/a,b"
cp "$B/libsluice.so" "$T/a,b/"
SLUICE_LIBRARY="$T/a,b/libsluice.so" $RUN -- $PODMAN run --rootfs "$ROOT" true >"$T/out" 2>&1
check "a path that --mount cannot carry is refused" $? = 71
check_file "with the reason" "$T/out" 'a,b/libsluice.so has a comma, a blank'
$RUN -- $PODMAN start again >"$T/out" 2>&1
check "podman start is refused" $? = 64
$RUN --limit 300MiB -- $PODMAN run --rm --no-such-option >"$T/out" 2>&1
check "podman's own errors are podman's" $? = 125
nothing() { [ -z "$(find "$T/runs" -mindepth 2)" ]; }
until_true 10 nothing
check "nothing is left in the folder of runs" $? = 0
check_books_empty
finish
