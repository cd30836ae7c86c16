#!/bin/sh
# Parked and resumed by hand: every kind of memory comes back as it was, at the same addresses; the program is
# told the same figures all the while, may ask about what is away, free it and ask for more, and its work
# waits and goes on. What cannot be moved stays, and is named.
# peer-failures rows 28, 29, 31.
export LIMIT=220
export BOX="--gpus 1 --memory 1GiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "sizes that are known"
config 'host_memory: 2GiB'
daemon_start

# All that can be moved, and what the driver says of it.
swapper one --request 0.3 --limit 0.8
for line in "alloc big 100m" "fill big 1" "alloc odd 3000001" "put odd 2" "many small 300 5000" "fill small 3" \
	"handles mine 32m 8m" "alias again mine" "fill again 4" "segment seg 24m 2m" "put seg 5" "shrink seg 4m" \
	"alloc zeros 40m" "zero zeros" "alloc few 40m" "zero few" "poke few 30000000 9" \
	"context other" "use other" "alloc there 10m" "fill there 9" "use main"; do
	# shellcheck disable=SC2086 # words
	ok one $line
done
# The first trip brings host memory, and soon after it the code that tells what has changed: hidden from then on.
park one
resume one
# The first trip loads what compares memory with its copies: a module of the library's own, which is hidden memory.
park one
resume one
# What is hidden is made in the background, too, and measured a little later than it is made.
still() {
	hidden_was=$(use one hidden_bytes)
	sleep 1.2
	[ "$(use one hidden_bytes)" = "$hidden_was" ]
}
until_true 15 still
ok one info
free_before=$VALUE
for thing in big odd small mine again seg; do
	ok one query $thing
	eval "said_$thing=$VALUE"
done
gpu_before=$(gpu backing_bytes)
free_gpu_before=$(gpu free_bytes)
check "what it has on the GPU" "$gpu_before" -ge $((250 * MIB))
park one
check "parked: nothing of it is on the GPU" "$(evicted_bytes one)" -ge $((250 * MIB))
check "parked: its bytes are free for others" "$(gpu free_bytes)" -ge $((free_gpu_before + 250 * MIB))
check "parked: its request is given up" "$(gpu requests_bytes)" = 0
# NVML and so the driver agree: the bytes are not there.
said=
is "parked: cuMemGetInfo says what it said before" "$free_before" one info
for thing in big odd small mine again seg; do
	eval "said=\$said_$thing"
	is "parked: the driver says of $thing what it said before" "$said" one query $thing
done
resume one
contents one "after one trip"
for thing in big small mine again seg; do
	eval "said=\$said_$thing"
	is "resumed: the driver says of $thing what it said before" "$said" one query $thing
done
is "resumed: cuMemGetInfo says what it said before" "$free_before" one info
check "resumed: all of it is back" "$(evicted_bytes one)" = 0
check "resumed: the GPU has as much as before" "$(gpu backing_bytes)" = "$gpu_before"

# Again and again, some of it changed between: what is kept on the host is never taken for what it is not.
for trip in 1 2 3; do
	ok one poke few $((trip * 9000000)) $trip
	ok one poke big $((trip * 31000000)) 77
	[ $trip = 2 ] && ok one fill mine 44
	[ $trip = 3 ] && ok one fill zeros 45
	park one
	resume one
	contents one "after trip $trip"
done

# Work waits while it is parked, and goes on by itself.
later one run big 1 0
until_true 10 late one 1 || fail "nothing is done while it is there"
park one
later one run odd 1 0
later one checkall
sleep 0.5
check "parked: work waits" "$(late one 2 && echo 'done')" = ""
is "parked: others of its threads are answered" "$free_before" one info
# Freed and asked for while it is away.
ok one free zeros
ok one free small
ok one info
check "parked: what is freed is told at once" "$VALUE" -ge $((free_before + 40 * MIB))
check "parked: and no more" "$VALUE" -le $((free_before + 42 * MIB))
later one alloc more 20m
sleep 0.3
check "parked: a new allocation waits" "$(late one 2 && echo 'done')" = ""
resume one
until_true 20 late one 4 || fail "what waited did not go on: $(cat "$T/one")"
check "what waited went well" "$(grep async "$T/one" | grep -vc CUDA_SUCCESS)" = 0
check "and found no word wrong" "$(grep async "$T/one" | grep -c '"run".*"value":0,')" = 2
ok one fill more 6
contents one "at the end"
ok one destroy other
ok one freeall
end_swapper one
check_books_empty

# What cannot be moved stays and is named; the rest of it goes.
swapper held --request 0.2 --limit 0.8
for line in "alloc big 60m" "fill big 1" "array arr 20m" "fill arr 2" "managed man 10m" "fill man 3" \
	"pool pool 10m" "fill pool 4" "alloc out 20m" "fill out 5" "export out $T/out"; do
	# shellcheck disable=SC2086 # words
	ok held $line
done
swapper peer --request 0 --limit 0.5
ok peer open theirs "$T/out" 20m 5
timeout 20 "$B/sluice" park held >"$T/park.out" 2>&1
check "park is done, though some stays" $? = 0
note "$(head -n 2 "$T/park.out" | tr '\n' ' ')"
until_true 20 evicted_at_least held $((92 * MIB))
settled held parked
check "what can be moved is away, a pool's 32 MiB too" "$(evicted_bytes held)" -ge $((92 * MIB))
check "and not what cannot" "$(evicted_bytes held)" -le $((102 * MIB))
contents peer "of memory whose maker is parked"
resume held
contents held "some of which never left"
end_swapper peer
end_swapper held
check_books_empty

# Parked when it ends: by returning from main, by _exit, by a signal, by one that cannot be caught.
for way in exit quit TERM KILL; do
	swapper "ends_$way" --request 0.1 --limit 0.5
	ok "ends_$way" alloc big 40m
	ok "ends_$way" fill big 1
	park "ends_$way"
	later "ends_$way" check big
	case $way in
	exit | quit) echo $way >"$T/ends_$way.in" ;;
	*) kill -$way "$(pid_of "ends_$way")" ;;
	esac
	until_true 10 gone "$(pid_of "ends_$way")" || fail "$way: it does not end while it is parked"
	kill -KILL "$(pid_of "ends_$way")" 2>/dev/null
	wait "$(pid_of "ends_$way")" 2>/dev/null
	rm -f "$T/ends_$way.in"
	note "ended by $way"
done
check_books_empty
# An unknown name, and a workload that has no client yet.
"$B/sluice" park nobody >"$T/nobody" 2>&1
check "parking nobody is refused" $? != 0
$RUN --request 0.1 --name empty -- sleep 30 &
empty=$!
until_true 5 is_at empty reserved || note "residency of an empty one: $(residency empty)"
"$B/sluice" park empty >"$T/empty" 2>&1
check "one without memory can be parked" $? = 0
"$B/sluice" resume empty >"$T/empty" 2>&1
check "and resumed" $? = 0
kill $empty
wait $empty 2>/dev/null
check_books_empty
daemon_stop
check "SIGTERM ends it well" $? = 0
finish
