#!/bin/sh
# What the design rests on, measured (tests/programs/gpu-probe). A part of tools/gpu-check; writes rows.
export BOX="--gpus 1 --memory 4GiB"
export LIMIT=240
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/rows.sh"
small=
[ -n "${SLUICE_TEST_REAL-}" ] && [ -z "${SLUICE_SOFTGPU-}" ] || small="--copy 64MiB --death 256MiB --rounds 5"
# shellcheck disable=SC2086 # option words
bounded 200 "$T/probe" "$P/gpu-probe" $small
# The parameter is MiB for handles, copies, pinning and deaths, KiB for cuMemAlloc.
sed -n 's/.*"figure":"\([^"]*\)","parameter":\([0-9]*\),"unit":"\([^"]*\)","median":\([0-9.]*\),"least":\([0-9.]*\),"most":\([0-9.]*\),.*/\1 \2|\4 \3 (\5 to \6)/p' \
	"$T/probe" | while IFS='|' read -r name text; do
	row "$name" figure "$text"
done
[ "$STATUS" = 0 ] || judge "gpu-probe" "$T/probe" 200
