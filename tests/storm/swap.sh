#!/bin/sh
# Random driver calls by several processes while their memory goes to the host and comes back at random: the
# answers, and what the memory holds, are those of a plain run.
# STORM_OPTIONS in place of the usual calls; STORM_SEED for the moves.
export LIMIT="${STORM_LIMIT:-270}"
export BOX="--gpus 2 --memory 8GiB"
. "$(dirname "$0")/../system/lib.sh"
software_only "a GPU that is the same twice"
# The storm's processes end without tidying up.
[ -z "${ASAN_OPTIONS-}" ] || export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
keep=${STORM_KEEP:-$T}
mkdir -p "$keep"
config 'host_memory: 2GiB'
config 'turn_max: 200ms'
daemon_start
without=$(sed -n 's/^\([a-z_*]*\): .*/\1/p' "$(dirname "$0")/known" | paste -sd, -)
# One after the other, with pauses that no step knows of; without a running storm, none is found.
move() {
	random=${STORM_SEED:-1}
	while [ ! -e "$T/over" ]; do
		random=$(((random * 1103515245 + 12345) % 2147483648))
		sleep "0.0$((random / 65536 % 80 + 10))"
		case $((random / 1024 % 4)) in
		0) "$B/sluice" resume --no-wait storm ;;
		1) timeout 10 "$B/sluice" park storm ;;
		*) "$B/sluice" park --no-wait storm && sleep "0.0$((random / 4096 % 80 + 10))" ;;
		esac
		"$B/sluice" resume --no-wait storm
	done >"$T/moves" 2>&1
}
move &
mover=$!
# Shown as it comes: what was found just before the time was over must not be lost.
# shellcheck disable=SC2086 # options are words
{
	"$B/tests/storm/storm" --keep "$keep" ${without:+--without "$without"} \
		${STORM_OPTIONS:---calls 100000 --steps 50000 --shrink 60} -- $RUN --name storm --request 0.2 --limit 1.0 --gpus 2 --
	echo $? >"$T/status"
} 2>&1 | tee "$T/out"
status=$(cat "$T/status")
: >"$T/over"
wait $mover
check "differences" "$status" = 0
grep -q "books of\|UNDERFLOW" "$T/out" "$T/daemon.log"
check "complaints about the books" "$?" = 1
# The moves were none in vain.
check "times that all of it was away" "$(grep -c ' PARKED' "$T/daemon.log")" -ge 3
check "times that it was let back" "$(grep -c ' RESUMED' "$T/daemon.log")" -ge 3
check_books_empty
finish
