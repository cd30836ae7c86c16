#!/bin/sh
# lib - what the tests with frameworks share; source it after tests/system/lib.sh.
#
# PROGRAM is the file that is run. The environment is that of tools/clients-venv --set frameworks; it skips where there is none, or
# no C compiler, which the software GPU needs for PTX. What needs NVIDIA's own libraries runs on a real GPU only, if
# $PYTHON has it.
# shellcheck disable=SC2034 # some variables are for the tests
HERE=$(cd "$(dirname "$0")" && pwd)
command -v cc >/dev/null || skip "no C compiler"
case ${PROGRAM-} in
torch_* | jax_*)
	[ -n "${SLUICE_TEST_REAL-}" ] && [ -z "${SLUICE_SOFTGPU-}" ] || skip "needs NVIDIA's driver, which its libraries authenticate"
	PYTHON=${PYTHON:-python3}
	"$PYTHON" -c "import ${PROGRAM%%_*}" 2>/dev/null || skip "$PYTHON has no ${PROGRAM%%_*}"
	;;
*)
	venv=$("$HERE/../../tools/clients-venv" --set frameworks 2>"$T/why") || skip "$(tail -n 1 "$T/why")"
	PYTHON="$venv/bin/python"
	;;
esac
# tinygrad: no processes of its own for its compiler, no cache outside the test. CC is that of its CPU backend.
export PARALLEL=0 CACHEDB="$T/tinygrad.db" CC="$HERE/cc" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
GPU_ENV="env DEV=CUDA:PTX TARGET=cuda"
CPU_ENV="env DEV=CPU:X86 TARGET=cpu"

# start OUT WORD...: a program in the background, behind the words, e.g. `sluice run`; $! is the last word's process.
start() {
	start_out=$T/$1
	shift
	# shellcheck disable=SC2086 # options are words
	"$@" "$PYTHON" "$HERE/$PROGRAM.py" $OPTIONS >"$start_out" 2>"$start_out.err" &
}
# daemon_begin: a daemon, once nothing is left of programs that ran without it: requests are parts of what can be shared.
nothing_unmanaged() { [ "$(gpu unmanaged_bytes)" = 0 ]; }
daemon_begin() {
	config 'host_memory: 2GiB'
	daemon_start
	until_true 20 nothing_unmanaged || fail "something is left on the GPU: $("$B/sluice" gpus)"
}
# ended OUT PID: waits for it; it must have succeeded.
ended() {
	wait "$2"
	ended_status=$?
	check "$1: status" $ended_status = 0
	[ $ended_status = 0 ] || tail -n 5 "$T/$1.err"
}
# alike OUT OTHER [TOLERANCE]: two programs told the same.
alike() {
	CHECKS=$((CHECKS + 1))
	if "$PYTHON" "$HERE/compare.py" "$T/$1" "$T/$2" ${3-} >"$T/alike"; then
		note "ok: $1 as $2: $(cat "$T/alike")"
	else
		fail "$1 is not as $2: $(cat "$T/alike")"
	fi
}
# moved NAME: it gave its memory up and has it back.
moved() {
	"$B/sluice" events --last 1000 --name "$1" >"$T/moved"
	grep -q "of $1 were moved from GPU 0 to the host" "$T/moved" && grep -q "$1 has its .* back on GPU 0" "$T/moved"
}
