#!/bin/sh
# tools/gpu-check itself: both columns are filled, with a software GPU that is larger than the tests' boxes and has
# contexts like a card's in the place of the card; a part that hangs, one that fails and a machine without a GPU are rows.
export BOX="--gpus 1 --memory 6GiB --context 300MiB --module 20MiB"
export LIMIT=200
. "$(dirname "$0")/../system/lib.sh"
software_only "it stands in for the card"
top=$(cd "$(dirname "$0")/../.." && pwd)
export BUILD="$B"
# cells OUT PART NAME: what the table has for this row.
cells() { sed -n "s/^| $2 | $3 | //p" "$1/results.md"; }
json_of() { sed -n '/^```json/,/^```$/p' "$1/results.md" | sed '1d;$d'; }

"$top/tools/gpu-check" --only "machine programs system/limit scenes/request-limit" "$T/out" >"$T/said" 2>&1
check "both columns: status" $? = 0
check "a system test" "$(cells "$T/out" system limit)" = "ok | ok |"
check "a scene" "$(cells "$T/out" scenes request-limit)" = "ok | ok |"
check "a program that needs a card says so, twice" \
	"$(cells "$T/out" programs torch-eager | grep -c 'not run: it needs NVIDIA.*not run: it needs NVIDIA')" = 1
check "the settings of the GPU" "$(cells "$T/out" machine 'settings of the GPU')" = "- | as before |"
check "a row in JSON" "$(json_of "$T/out" | json name=limit.verdict)" = ok
check "as many rows in JSON as there are" "$(json_of "$T/out" | json '#')" = "$(wc -l <"$T/out/rows.tsv")"
check "it names the file" "$(tail -n 1 "$T/said" | grep -c "$T/out/results.md")" = 1

# One row again leaves the others alone.
before=$(grep -c . "$T/out/rows.tsv")
"$top/tools/gpu-check" --software --only scenes/request-limit "$T/out" >"$T/said" 2>&1
check "one row again: status" $? = 0
check "as many rows as before" "$(grep -c . "$T/out/rows.tsv")" = "$before"

"$top/tools/gpu-check" --card --seconds 0 --only system/limit "$T/late" >"$T/said" 2>&1
check "what no time was left for" "$(cells "$T/late" system 'all of it')" = "not run | not run: the time given was over |"

# Packed for another machine, it is whole.
"$top/tools/gpu-pack" "$T/pack" "$B" >"$T/said" 2>&1
check "it can be packed" $? = 0
env -u BUILD "$T/pack/run" --card --only "contract system/limit" "$T/packed" >"$T/said" 2>&1
check "the pack: status" $? = 0
check "the pack: a test" "$(cells "$T/packed" system limit)" = "not run | ok |"
check "the pack: facts" "$(cells "$T/packed" contract 'facts with another answer under Sluice')" = "not run | none |"
# A test that leaves a process on the card.
echo 'setsid sleep 300 & echo $! >"$LEFT"' >"$T/pack/tests/scenes/leaves.sh"
echo 'leaves  something' >"$T/pack/tests/scenes/scenes.list"
env -u BUILD LEFT="$T/left" "$T/pack/run" --card --only scenes/leaves "$T/packed" >"$T/said" 2>&1
check "it is ended before the next one" "$(until_true 10 gone "$(cat "$T/left")" && echo yes)" = yes

# Without a GPU the column says why.
env -u LD_LIBRARY_PATH -u SLUICE_SOFTGPU "$top/tools/gpu-check" --card --only "machine scenes" "$T/none" >"$T/said" 2>&1
check "no GPU: status" $? = 0
check "and the reason" "$(cells "$T/none" scenes 'all of it')" = "not run | not run: NVML finds no NVIDIA GPU on this machine |"

# Rows that fail or hang, and characters that Markdown or JSON could take for theirs.
export ROWS="$T/rows" COLUMN=card PART=scenes
. "$top/tests/gpu/rows.sh"
bounded 1 "$T/log" sh -c 'echo begun; sleep 60'
judge hangs "$T/log" 1
cat >"$T/fails.sh" <<'END'
printf '  FAILED: a|b %s "c"\n' '\n'
exit 1
END
bounded 20 "$T/fails" sh "$T/fails.sh"
judge fails "$T/fails" 20
bounded 20 "$T/skips" sh -c 'echo "  skipped: no need"; exit 77'
judge skips "$T/skips" 20
mkdir "$T/made"
"$top/tools/gpu-table" "$ROWS" >"$T/made/results.md"
check "what hangs" "$(cells "$T/made" scenes hangs)" = "not run | **FAILED**: no end within 1 s |"
check "what fails" "$(cells "$T/made" scenes fails)" = 'not run | **FAILED**: status 1: a\|b \n "c" |'
check "what is skipped" "$(cells "$T/made" scenes skips)" = "not run | skipped: no need |"
check "the log of what failed is in the file" "$(grep -c '^    begun' "$T/made/results.md")" = 1
check "the same text in JSON" "$(json_of "$T/made" | json name=fails.text)" = 'status 1: a|b \n "c"'
check "the count" "$(grep -c '^- GPU: 0 ok, 2 failed, 1 skipped, 0 that could not run, 0 figures$' "$T/made/results.md")" = 1
finish
