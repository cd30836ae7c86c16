#!/bin/sh
# Pieces that are not there: the library, NVML, the driver. Each is said, with the remedy; nothing hangs.
. "$(dirname "$0")/lib.sh"
software_only "a driver that can be taken apart"
daemon_start
mkdir "$T/alone"
cp "$B/sluice" "$T/alone/"
env -u SLUICE_LIBRARY "$T/alone/sluice" run -- true 2>"$T/library"
check "no libsluice.so" $? = 78
check_file "says which" "$T/library" 'libsluice\.so'
# Named, but not ours: the program must not run silently without limits.
SLUICE_LIBRARY=$(ldd "$B/sluice" | sed -n 's/.*=> \(.*libc\.so\.6\).*/\1/p') \
	$RUN --limit 100MiB -- touch "$T/ran" 2>"$T/library"
check "a library of others" $? = 78
check_file "says so" "$T/library" "not Sluice's library"
check "nothing ran" "$(find "$T/ran" 2>/dev/null | wc -l)" = 0
daemon_stop

# NVML absent: a folder with the driver only.
mkdir "$T/driver"
cuda=$(echo "$LD_LIBRARY_PATH" | cut -d: -f1)
cp -L "$cuda/libcuda.so.1" "$T/driver/"
(
	LD_LIBRARY_PATH=$T/driver
	export LD_LIBRARY_PATH
	timeout -k 2 20 "$B/sluiced" --config /dev/null --socket "$T/n" --state "$T/nstate" >"$T/nonvml" 2>&1 &
	pid=$!
	until_true 15 test -S "$T/n"
	SLUICE_SOCKET=$T/n timeout -k 2 20 "$B/sluice" doctor >"$T/doctor" 2>&1
	echo $? >"$T/doctor.status"
	kill -TERM $pid 2>/dev/null
	wait $pid
)
check_file "without NVML the daemon or doctor says so" "$T/nonvml" '[Nn][Vv][Mm][Ll]|libnvidia-ml'
check "doctor ends, and says that something is wrong" "$(cat "$T/doctor.status")" = 1
check_file "doctor names it" "$T/doctor" '[Nn][Vv][Mm][Ll].*libnvidia-ml'
# No driver at all: the program's own failure, not ours.
daemon_start
$RUN -- env LD_LIBRARY_PATH=/nonexistent "$P/meminfo" >"$T/nodriver" 2>&1
check "no driver: the loader's own status" $? = 127
check_file "the loader's own words" "$T/nodriver" 'libcuda\.so\.1'
finish
