#!/bin/sh
# Programs of PyTorch, JAX, CuPy and vLLM, natively and under Sluice with each call of the driver counted: what they print must
# be the same, and nothing may be submitted past the hooks. A part of tools/gpu-check; writes rows.
export BOX="--gpus 1 --memory 4GiB"
export LIMIT=1500
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/rows.sh"
here=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-python3}
config 'context_reserve: auto'
export PYTHONUNBUFFERED=1

# What is missing for the program, or nothing.
missing() {
	[ -n "${SLUICE_TEST_REAL-}" ] && [ -z "${SLUICE_SOFTGPU-}" ] || {
		echo "it needs NVIDIA's driver, which its runtime library authenticates"
		return
	}
	command -v "$PYTHON" >/dev/null 2>&1 || {
		echo "there is no $PYTHON"
		return
	}
	timeout 60 "$PYTHON" -c "import $1" >/dev/null 2>&1 || echo "$PYTHON has no $1"
}
# told OUT COMMAND...: its standard output in the file OUT; warnings and progress, which go to standard error, in $T/log.
told() {
	told_out=$1
	shift
	# shellcheck disable=SC2016 # the inner shell expands
	bounded "$seconds" "$T/log" sh -c 'out=$1; shift; exec "$@" >"$out"' sh "$told_out" "$@"
}
program() { # FILE
	name=$(basename "$1" .py)
	module=${name%%-*}
	why=$(missing "$module")
	if [ -n "$why" ]; then
		row "$name" missing "$why"
		return
	fi
	rm -f "$T/native" "$T/shared" "$T/trace" "$T/log"
	seconds=120
	[ "$module" != vllm ] || seconds=300
	told "$T/native" "$PYTHON" "$1"
	alone=$STATUS
	told "$T/shared" "$B/sluice" run --name "$name" --request 0.1 --limit 0.5 -- \
		"$here/../../tools/trace" "$B" "$T/trace" -- "$PYTHON" "$1"
	missed=$(awk '/^NO HOOK SAW/ { print $4 }' "$T/trace" 2>/dev/null | tr '\n' ' ')
	diff "$T/native" "$T/shared" >>"$T/log" 2>&1
	differ=$?
	if [ "$alone" = 124 ]; then
		row "$name" failed "natively no end within $seconds s: no fault of Sluice" "$T/log"
	elif [ "$alone" != 0 ]; then
		row "$name" failed "natively status $alone: no fault of Sluice" "$T/log"
	elif [ "$STATUS" = 124 ]; then
		row "$name" failed "under Sluice no end within $seconds s" "$T/log"
	elif [ -n "$missed" ]; then
		row "$name" failed "calls past the hooks: $missed" "$T/log"
	elif [ "$STATUS" != 0 ]; then
		row "$name" failed "under Sluice status $STATUS" "$T/log"
	elif [ $differ != 0 ] || [ ! -s "$T/native" ]; then
		row "$name" failed "under Sluice it says something else, or nothing" "$T/log"
	else
		row "$name" ok "the same $(wc -l <"$T/native") lines; private tables of the runtime: $(grep -c '^TABLE' "$T/trace")"
	fi
}
daemon_start
for file in "$here"/*-*.py; do
	program "$file"
done
