#!/bin/sh
# The facts of tests/contract, natively and under Sluice: how many hold, and which have another answer there. A part of
# tools/gpu-check; writes rows.
export BOX="--gpus 1 --memory 4GiB"
export LIMIT=600
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/rows.sh"
# All of the GPU, not a box of it.
config 'context_reserve: auto'

# facts NAME COMMAND...: a row for the count, and one for each fact that does not hold.
facts() {
	facts_name=$1
	shift
	bounded 290 "$T/$facts_name" "$@"
	facts_text=$(tail -n 1 "$T/$facts_name")
	case $STATUS:$facts_text in
	0:*' 0 do not'*) row "facts, $facts_name" ok "$facts_text" ;;
	124:*) row "facts, $facts_name" failed "no end within 290 s" "$T/$facts_name" ;;
	1:*' do not'*) row "facts, $facts_name" failed "$facts_text" ;;
	*) row "facts, $facts_name" failed "status $STATUS" "$T/$facts_name" ;;
	esac
	grep -A1 '^FAIL' "$T/$facts_name" >"$T/failed"
	awk '/^FAIL/ { print $2 }' "$T/failed" | while read -r fact; do
		grep -A1 "^FAIL *$fact " "$T/failed" >"$T/fact"
		row "fact $fact, $facts_name" failed "does not hold" "$T/fact"
	done
	# Name and outcome of each, for the comparison.
	awk '/^(ok|FAIL|skip)/ { print $2, $1 }' "$T/$facts_name" | sort >"$T/$facts_name.answers"
}
# On a card each fact takes a second or so, mostly to start.
jobs=$(nproc)
facts native "$B/tests/contract/contract" --jobs "$jobs"
if [ -n "${SLUICE_TEST_REAL-}" ] && [ -z "${SLUICE_SOFTGPU-}" ]; then
	gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader -i 0 2>/dev/null | sed 's/, /", "/')
	sed -n "s/ ok\$/, \"$gpu\")/p" "$T/native.answers" | sed 's/^/OBSERVED(/' >"$T/observed"
	LOG_LINES=1000 row "facts for tests/contract/observed.def" figure "$(wc -l <"$T/observed")" "$T/observed"
fi
daemon_start
facts "under Sluice" $RUN --limit 0.9 -- "$B/tests/contract/contract" --jobs "$jobs"
# Facts about the bare driver are not asked under Sluice.
grep -A1 '^skip' "$T/under Sluice" | awk '/^skip/ { name = $2 } /bare driver/ { print name }' | sort >"$T/bare"
join -v 1 "$T/native.answers" "$T/bare" >"$T/left"
join -v 1 "$T/under Sluice.answers" "$T/bare" >"$T/right"
diff "$T/left" "$T/right" >"$T/diff"
differ=$(grep '^[<>]' "$T/diff" | awk '{ print $2 }' | sort -u | tr '\n' ' ')
row "facts with another answer under Sluice" "$([ -s "$T/diff" ] && echo failed || echo ok)" "${differ:-none}" "$T/diff"
