#!/bin/sh
# Memory that cannot be moved is seen, claims its place among the requests, and stands on no other request; an
# old daemon's end does not make it any less (peer-failures rows 8, 29, 35).
export BOX="--gpus 1 --memory 1GiB --context 16MiB --module 4MiB" LIMIT=120
. "$(dirname "$0")/lib.sh"
software_only "sizes of contexts that are known"
echo 'longest_wait: 20s' >"$CONFIG"
daemon_start
mib=1048576
field() { json -l "event=$2" "$3" <"$T/$1"; }
held_is() { [ "$(use "$1" held_bytes)" = "$2" ]; }
owner_is_there() { [ "$(use owner request_bytes)" = $((700 * mib)) ]; }
reserve_of() { "$B/sluice" run --request "$1" --limit "$1" -- true >"$T/out" 2>&1; }

# Seen, by workload and by process, and gone with it.
$RUN --request 0 --limit 1.0 --name keeps -- "$P/keeper" --kind array --max 600MiB --hold-ms 60000 >"$T/keeps" &
keeps=$!
wait_event "$T/keeps" took
until_true 5 held_is keeps $((600 * mib))
check "ps tells what is held" "$(use keeps held_bytes)" = $((600 * mib))
"$B/sluice" ps --clients >"$T/clients"
check_file "and ps --clients, by process" "$T/clients" '^keeps .* 600MiB +[0-9]+MiB +600MiB '
"$B/sluice" dump >"$T/dump"
check_file "and dump" "$T/dump" '"held_bytes": ?629145600'

# It claims: no request is promised over it, before and after the daemon has changed.
for when in before after; do
	reserve_of 400MiB
	check "$when: a request that it leaves no room for is refused" $? != 0
	check_file "$when: with the numbers" "$T/out" "held memory leave [0-9.]+ [MG]iB"
	reserve_of 300MiB
	check "$when: one beside it is not" $? = 0
	[ $when = after ] && break
	daemon_kill
	daemon_start
	until_true 10 held_is keeps $((600 * mib))
	check "the next daemon knows of it" "$(use keeps held_bytes)" = $((600 * mib))
done
kill -KILL $keeps
wait $keeps 2>/dev/null
check_books_empty

# It stands on no request of others: it gets unrequested memory only, though more is free, and it is not the
# longest wait that ends its last demand.
$RUN --request 700MiB --limit 1.0 --name owner -- sleep 60 &
owner=$!
until_true 5 owner_is_there
$RUN --request 0 --limit 1.0 --name guest -- "$P/keeper" --kind array --rounds 1 >"$T/guest"
check "it ends well" $? = 0
check "with out-of-memory" "$(field guest took result)" = CUDA_ERROR_OUT_OF_MEMORY
check "within what nobody requested" "$(field guest took bytes)" -le $(((1024 - 64 - 700) * mib))
"$B/sluice" why guest >"$T/why"
check_file "and why says so" "$T/why" "that cannot be moved .* requests leave"
kill $owner
wait $owner 2>/dev/null
check_books_empty
daemon_stop
check "SIGTERM ends it well" $? = 0
finish
