#!/bin/sh
# The library under orders that no sensible daemon gives: evict all or a few bytes, abort, restore at once or
# late, take copies back, lose the line, give too little host memory (swap-daemon.c). The programs find
# every word as they left it, none hangs, and every order is answered with figures that can be.
# peer-failures rows 28 (moved only while drained, to the same address), 30, 31 and 33.
export LIMIT=280
export BOX="--gpus 1 --memory 1GiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a daemon that stands in for sluiced"
export SLUICE_WORKLOAD=00112233445566778899aabbccddeeff
# In place of `sluice run`: the library by hand.
# shellcheck disable=SC2034 # swap-lib.sh reads it
RUN="env LD_PRELOAD=${SLUICE_LIBRARY:-$B/libsluice.so} SLUICE_SOCKET=$T/g sh $T/front"
cat >"$T/front" <<'END'
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
END

# with SEED OPTIONS...: such a daemon.
with() {
	rm -f "$T/g"
	with_seed=$1
	shift
	"$B/tests/system/swap-daemon" --socket "$T/g" --seed "$with_seed" "$@" >"$T/orders" 2>"$T/orders.err" &
	orders=$!
	wait_event "$T/orders" listening
}
over() {
	kill -TERM $orders
	wait $orders
	check "$1: every order was answered, rightly" $? = 0
	[ "$(json -l event=end wrong <"$T/orders")" = 0 ] || tail -n 5 "$T/orders"
	note "$(tail -n 1 "$T/orders")"
	[ -s "$T/$1.err" ] && head -n 5 "$T/$1.err"
	check "$1: orders to leave" "$(json -l event=end evicts <"$T/orders")" -ge 10
	check "$1: bytes that were moved" "$(json -l event=end moved <"$T/orders")" -ge $((10 * MIB))
}
# things NAME: memory of every kind.
things() {
	for line in "alloc big 100m" "fill big 1" "alloc odd 3000001" "put odd 2" "many small 200 5000" "fill small 3" \
		"handles mine 32m 8m" "alias again mine" "fill again 4" "segment seg 24m 2m" "put seg 5" "shrink seg 4m" \
		"alloc zeros 40m" "zero zeros" "alloc few 40m" "zero few" "poke few 30000000 9" \
		"array arr 4m" "fill arr 6" "managed man 4m" "fill man 7" "pool pool 4m" "fill pool 8" \
		"context other" "use other" "alloc there 10m" "fill there 9" "use main"; do
		# shellcheck disable=SC2086 # words
		ok "$1" $line
	done
}
# works NAME: all there is to do, in threads.
works() {
	for line in "rounds 2 4m 1" "churn 2 1m 0" "copies 1 1m 3" "comers 1 256k 2" "callbacks 2 64k 1" \
		"values 1 64k 1" "graphs 1 1m 3" "queries 1 1m 3" "contexts 1 256k 20"; do
		# shellcheck disable=SC2086 # words
		ok "$1" begin $line
	done
}
# trial NAME SEED ROUNDS OPTIONS...
trial() {
	trial_name=$1 trial_rounds=$3
	trial_seed=$2
	shift 3
	with "$trial_seed" "$@"
	swapper "$trial_name"
	things "$trial_name"
	for query in big small mine; do
		ok "$trial_name" query $query
		eval "before_$query=$VALUE"
	done
	works "$trial_name"
	trial_round=0
	while [ $trial_round -lt "$trial_rounds" ]; do
		trial_round=$((trial_round + 1))
		contents "$trial_name" "round $trial_round"
		ok "$trial_name" run big 1 50
		ok "$trial_name" poke few $((trial_round * 4000000)) $trial_round
		ok "$trial_name" alloc more$trial_round 20m
		ok "$trial_name" fill more$trial_round $trial_round
	done
	check "$trial_name: its threads get on" "$(goes_on "$trial_name" && echo yes)" = yes
	stop_work "$trial_name"
	contents "$trial_name" "at the end"
	for query in big small mine; do
		eval "value=\$before_$query"
		# shellcheck disable=SC2154 # by eval
		is "$trial_name: the driver says of $query what it said before" "$value" "$trial_name" query $query
	done
	ok "$trial_name" free more1
	ok "$trial_name" destroy other
	ok "$trial_name" freeall
	grep -h "\"query\"" "$T/$trial_name" >"$T/queries"
	end_swapper "$trial_name"
	over "$trial_name"
	[ "$FAILED" = 0 ] || cat "$T/queries"
}
if [ -n "${SWAP_SEED-}" ]; then
	trial seed "$SWAP_SEED" "${SWAP_ROUNDS:-6}" ${SWAP_OPTIONS-}
else
	trial slow 1 2 --pause-ms 60
	trial quick 2 2 --pause-ms 25
	trial lost 3 2 --pause-ms 40 --lose 40
	trial stingy 4 2 --pause-ms 40 --stingy 1
fi
finish
