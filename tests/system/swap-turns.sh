#!/bin/sh
# Programs that do not fit together take turns by the resolver `swap`: each gets the results it gets alone, none
# sees out-of-memory, and the wait that is promised is a number. Warm: idle long enough it leaves, and its first
# call brings it back. Partial: no more leaves than is needed. A pool that is full means the next resolver.
export LIMIT=280
export BOX="--gpus 1 --memory 512MiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "sizes that are known"
config 'host_memory: 3GiB'
config 'turn_max: 1s'
daemon_start

# The work of each when it is alone.
digest_alone() {
	"$P/swapper" <"$1" | json -l did=digest value
}
script() {
	printf 'alloc a 120m\nfill a %s\nmany m 100 20000\nput m %s\nhandles h 80m 20m\nfill h %s\n' "$1" "$1" "$1"
	printf 'run a 8 40\nrun h 8 40\nrun m 2 0\nrun a 3 10\ncheckall\ndigest a\nfree m\ndigest h\nexit\n'
}
for who in 100 200 300; do
	script $who >"$T/script.$who"
	digest_alone "$T/script.$who" >"$T/alone.$who"
done
for who in 100 200 300; do
	$RUN --name "w$who" --request 0.2 --limit 1.0 -- "$P/swapper" <"$T/script.$who" >"$T/out.$who" 2>"$T/err.$who" &
	eval "pid_$who=$!"
done
turns_seen() {
	"$B/sluice" ps --json >"$T/ps.json" 2>/dev/null && grep -q '"evicted_bytes": *[1-9]' "$T/ps.json"
}
check "somebody is moved out of the way" "$(until_true 30 turns_seen && echo yes)" = yes
wait_told() { "$B/sluice" ps --json 2>/dev/null | grep -q '"longest_wait_ms": *[1-9]'; }
check "and the longest wait is told" "$(until_true 30 wait_told && echo yes)" = yes
for who in 100 200 300; do
	eval "wait \$pid_$who"
	check "w$who: status" $? = 0
	check "w$who: nothing failed" "$(grep -vc CUDA_SUCCESS "$T/out.$who")" = 0
	check "w$who: no word was wrong" "$(grep -E '"(run|checkall)"' "$T/out.$who" | grep -vc '"value":0[,}]')" = 0
	check "w$who: results as alone" "$(json -l did=digest value <"$T/out.$who")" = "$(cat "$T/alone.$who")"
done
check_books_empty

# An idle one leaves when another needs its place, no more of it than that, and comes back when it works.
swapper idle --request 0 --limit 1.0
ok idle many parts 20 12m
ok idle fill parts 1
swapper busy --request 0 --limit 1.0
ok busy alloc b 300m
ok busy fill b 2
out=$(evicted_bytes idle)
check "some of the idle one left" "$out" -ge $((20 * MIB))
check "but not all of it" "$out" -lt $((240 * MIB))
contents idle "after part of it had left"
contents busy "and the other's"
end_swapper busy
contents idle "with all the room there is"
end_swapper idle
check_books_empty

# Warm.
swapper warm --request 0.2 --limit 0.5 --warm-after 1s
ok warm alloc w 40m
ok warm fill w 3
settled warm warm
check "its request is kept" "$(gpu requests_bytes)" -ge $((80 * MIB))
check "its memory is away" "$(evicted_bytes warm)" -ge $((40 * MIB))
contents warm "brought back by its first call"
settled warm warm
ok warm alloc more 1m
settled warm warm
"$B/sluice" set warm --warm-after 0s >"$T/set" 2>&1 || "$B/sluice" set warm --warm-after off >"$T/set" 2>&1
check "warm-after can be taken away" $? = 0
contents warm "again"
sleep 1.5
check "and then it stays" "$(residency warm)" = bound
end_swapper warm

# The daemon gone while one is parked and its threads want in: they wait, and go on under the next one.
swapper waits --request 0.2 --limit 0.8
ok waits alloc a 60m
ok waits fill a 4
ok waits many m 50 10000
ok waits fill m 5
park waits
daemon_kill
later waits checkall
ok waits info
ok waits query a
sleep 0.5
check "without a daemon it waits" "$(late waits 1 && echo "done")" = ""
daemon_start
settled waits parked
until_true 10 evicted_at_least waits $((60 * MIB))
check "the next daemon knows what is away" "$(evicted_bytes waits)" -ge $((60 * MIB))
resume waits
until_true 20 late waits 1 || fail "it does not go on"
check_file "and nothing was lost" "$T/waits" '"checkall","result":"CUDA_SUCCESS","value":0,'
# Once more, without a park: a daemon that dies while one is evicted by its resolver.
swapper pushes --request 0 --limit 1.0
ok pushes alloc b 440m
ok pushes fill b 6
check "the one in the way is out" "$(evicted_bytes waits)" -ge $((10 * MIB))
daemon_kill
later waits checkall
later pushes checkall
sleep 0.3
daemon_start
until_true 40 late waits 2 || fail "the one that was out does not come back"
until_true 40 late pushes 1 || fail "the other one does not go on"
check "nothing was lost" "$(cat "$T/waits" "$T/pushes" | grep async | grep -c '"value":0,"things"')" = 3
end_swapper waits
end_swapper pushes
check_books_empty
daemon_stop
check "SIGTERM ends it well" $? = 0

# Little host memory: the pool bounds what is lent, the next resolver has its say, and the events tell.
printf 'host_memory: 96MiB\nhost_slack: 16MiB\nlongest_wait: 1s\n' >"$CONFIG"
daemon_start
swapper first --request 0 --limit 1.0
ok first alloc a 260m
ok first fill a 1
swapper second --request 0 --limit 1.0
refused "a pool too small means waiting, and then out-of-memory" CUDA_ERROR_OUT_OF_MEMORY second alloc b 260m
"$B/sluice" events >"$T/events" 2>&1 || "$B/sluice" top --events >"$T/events" 2>&1
check_file "the events say so" "$T/events" "[Pp]ool|host memory|host has no memory"
ok second alloc c 50m
ok second fill c 2
contents first
contents second
end_swapper first
end_swapper second
check_books_empty
daemon_stop

# Swap off: nothing ever leaves.
printf 'longest_wait: 1s\n' >"$CONFIG"
daemon_start
swapper stays --request 0 --limit 1.0 --swap off
ok stays alloc a 260m
ok stays fill a 1
swapper asks --request 0 --limit 1.0
refused "one that must not be swapped is not" CUDA_ERROR_OUT_OF_MEMORY asks alloc b 260m
contents stays
end_swapper asks
end_swapper stays
check_books_empty
finish
