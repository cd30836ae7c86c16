#!/bin/sh
# A workload's own resolvers: what is done for its demands above its request, within what the daemon allows.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=140
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
config 'host_memory: 1GiB'
config 'longest_wait: 1s'
daemon_start
S="$B/sluice"

waits() { [ "$(use "$1" waiting)" = 1 ]; }
has_left() { [ "$(use idle out_bytes)" -gt 0 ]; }
said() { "$S" events --last 200 | grep -c "$1"; }

note "--- what nothing may be moved for"
swapper idle --request 0 --limit 0.9
ok idle alloc a 600m
ok idle fill a 7
swapper fails --request 200MiB --limit 0.9 --on-collision fail
swapper waits --request 0 --limit 0.9 --on-collision wait --longest-wait 80s
check "it is shown" "$(use fails on_collision)" = fail
check "as the daemon has it" "$("$S" dump | json workloads.name=waits.on_collision)" = wait
ok fails alloc fits 64m
refused "a burst fails" CUDA_ERROR_OUT_OF_MEMORY fails alloc burst 500m
check "at once" "$(said 'fails was denied')" = 1
later waits alloc burst 500m
until_true 20 waits waits || fail "it does not wait: $("$S" why waits)"
check "nothing was moved" "$(use idle out_bytes)" = 0

note "--- a change holds for what waits already"
"$S" set waits --on-collision swap,wait >"$T/set.out" 2>&1 || fail "$(cat "$T/set.out")"
check_file "it is told" "$T/set.out" 'on collision swap,wait'
until_true 20 late waits 1 || fail "it still waits: $("$S" why waits)"
check "now the idle one has left" "$(until_true 20 has_left && echo yes)" = yes
check "the user is told" "$(said 'other resolvers settle its collisions')" = 1
"$S" set waits --on-collision default >"$T/set.out" 2>&1 || fail "$(cat "$T/set.out")"
check "the daemon's" "$("$S" ps --json | json name=waits.on_collision)" = ""

note "--- within the request others leave, whatever it chose"
ok fails alloc rest 120m
contents idle

note "--- what the daemon's resolvers lack"
for verb in run submit; do
	"$S" $verb --request 16MiB --on-collision priority,wait -- true >"$T/said" 2>&1
	check "$verb: refused" $? = 75
	check_file "$verb: the setting is named" "$T/said" 'priority.*resolvers of sluiced.conf: swap wait'
done
"$S" set fails --on-collision priority >"$T/said" 2>&1
check "set: refused" $? = 75
check_file "set: the setting is named" "$T/said" 'priority.*resolvers of sluiced.conf: swap wait'
"$S" run --on-collision wait,fail -- true >"$T/said" 2>&1
check "a contradiction" $? = 64

note "--- a new daemon knows it"
daemon_kill
daemon_start
until_true 20 use_is fails on_collision fail || fail "it has '$(use fails on_collision)'"
refused "and it fails again" CUDA_ERROR_OUT_OF_MEMORY fails alloc burst 700m
finish
