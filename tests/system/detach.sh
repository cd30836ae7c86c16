#!/bin/sh
# Parked processes leave their GPUs whole, contexts included, and come back with everything they had.
export BOX='--gpus 1 --memory 2GiB'
export LIMIT=190
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
config 'host_memory: 2GiB'
config 'detach_contexts: yes'
daemon_start

# What the driver lists, whatever the daemon believes.
listed() { "$P/nvml-view" | json -n what=process; }
lists() { [ "$(listed)" = "$1" ]; }
measured() { echo $(($(gpu paid_bytes) + $(gpu hidden_bytes))); }
measures() { [ "$(measured)" -ge "$1" ]; }
measures_nothing() { [ "$(measured)" = 0 ]; }
helper() { pgrep -P "$DAEMON" sluice-move; }
said() { "$B/sluice" events --last 200 | grep -c "$1"; }

note "--- one goes and comes back"
swapper one --request 512MiB
ok one alloc a 64m
ok one fill a 1
until_true 20 lists 1 || fail "the driver lists $(listed) processes"
before=$(measured)
check "its context is there" "$before" -gt 0
for i in 1 2 3; do
	park one
	until_true 20 lists 0 || fail "its context stays: $("$B/sluice" events --last 5)"
	# The daemon hears of it a moment after the driver.
	until_true 20 measures_nothing
	check "nothing of it is on the GPU ($i)" "$(measured)" = 0
	check "it is parked" "$(residency one)" = parked
	resume one
	check "the driver lists it" "$(listed)" = 1
	contents one "after return $i"
done
check "its context counts again" "$(until_true 20 measures "$before" && echo yes)" = yes
check_file "the user is told" "$T/resume.out" 'is back'
check "each time" "$(said 'has left its GPUs')" = 3

note "--- the helper dies while it is away"
park one
until_true 20 lists 0 || fail "its context stays"
kill -KILL "$(helper)"
resume one
contents one "by a new helper"

note "--- the daemon dies while it is away"
park one
until_true 20 lists 0 || fail "its context stays"
daemon_kill
daemon_start
until_true 20 is_at one parked || fail "it is not parked any more, but $(residency one)"
sleep 1
check "it stays away" "$(listed)" = 0
resume one
contents one "by a new daemon"
check "its context counts" "$(until_true 20 measures "$before" && echo yes)" = yes

note "--- one that is stopped while it is away ends as if it were there"
park one
until_true 20 lists 0 || fail "its context stays"
"$B/sluice" stop one --grace 60s >"$T/stop.out" 2>&1 || fail "cannot stop it: $(cat "$T/stop.out")"
until_true 20 gone "$(pid_of one)" || fail "it does not end"
wait "$(pid_of one)" 2>/dev/null
rm -f "$T/one.in"
check_books_empty

note "--- idle ones go by themselves, and come back with their next call, whatever it is"
swapper idle --request 1GiB --detach-after 1s
ok idle alloc a 64m
ok idle fill a 3
for call in "checkall" "info" "use main" "alloc b 1m"; do
	settled idle detached
	until_true 20 lists 0 || fail "its context stays: $("$B/sluice" events --last 5)"
	check "its request is given up" "$(gpu requests_bytes)" = 0
	# shellcheck disable=SC2086 # words
	ok idle $call
	settled idle bound
	check "with its request" "$(gpu requests_bytes)" = $((1024 * MIB))
done
contents idle
check "told" "$(said 'idle is detached with')" -ge 4

note "--- while it is away, its settings can be changed"
settled idle detached
"$B/sluice" set idle --detach-after 0 >"$T/set" 2>&1
check "set" $? = 0
check_file "is told" "$T/set" 'never detached for being idle'
check "and is so" "$(use idle detach_after_ms)" = 0
ok idle checkall
settled idle bound
sleep 2
check "it stays" "$(residency idle)" = bound
"$B/sluice" set idle --detach-after 1s >"$T/set" 2>&1
check_file "back again" "$T/set" 'detached after 1s'

note "--- its place is given to another one meanwhile, and it waits for that one's end"
settled idle detached
swapper other --request 1536MiB
ok other alloc a 1400m
later idle checkall
sleep 1
check "it waits" "$(residency idle)" != bound
"$B/sluice" why idle >"$T/why" 2>&1
check_file "and says why" "$T/why" 'will resume once its request|is detached and wants to run|waits'
kill_swapper other
settled idle bound
until_true 20 late idle 1 || fail "its call does not return"
contents idle

note "--- a user who parks it while it waits has the last word"
settled idle detached
swapper other --request 1536MiB
ok other alloc a 10m
later idle checkall
sleep 1
park idle
kill_swapper other
sleep 1.5
check "it stays" "$(residency idle)" = parked
resume idle
until_true 20 late idle 2 || fail "its call does not return"

note "--- beside one with which it fits to the byte it comes back at once"
settled idle detached
"$B/sluice" set idle --request 500MiB >"$T/set" 2>&1 || fail "cannot change it: $(cat "$T/set")"
swapper other --request 1420MiB
ok other alloc a 10m
ok idle checkall
settled idle bound
end_swapper other
"$B/sluice" set idle --request 1GiB >"$T/set" 2>&1 || fail "cannot change it: $(cat "$T/set")"

note "--- the daemon dies while it is detached, and its next call comes meanwhile"
settled idle detached
until_true 20 lists 0 || fail "its context stays"
daemon_kill
later idle info
sleep 0.5
daemon_start
settled idle bound
until_true 20 late idle 3 || fail "its call does not return"
contents idle
end_swapper idle
check_books_empty

note "--- without the setting contexts stay"
echo 'detach_contexts: no' >>"$CONFIG"
sed -i '/^detach_contexts: yes/d' "$CONFIG"
kill -HUP "$DAEMON"
swapper two --request 512MiB
ok two alloc a 64m
ok two fill a 2
park two
sleep 1
check "the driver lists it" "$(listed)" = 1
resume two
contents two
end_swapper two
check_books_empty

# A packed build has none that dies where it is told to.
[ -x "$B/tests/crash/sluiced-steps" ] || finish
note "--- the daemon dies between the journal and the driver"
daemon_stop
echo 'detach_contexts: yes' >>"$CONFIG"
sed -i '/^detach_contexts: no/d' "$CONFIG"
SLUICE_MOVE=$B/sluice-move SLUICE_STEP=D_AWAY_SAVED "$B/tests/crash/sluiced-steps" --config "$CONFIG" --socket "$T/s" \
	--state "$T/state" >>"$T/daemon.log" 2>&1 &
DAEMON=$!
until_true 10 daemon_up || fail "sluiced does not answer"
swapper three --request 512MiB
ok three alloc a 64m
ok three fill a 4
timeout 10 "$B/sluice" park three >"$T/park.out" 2>&1
until_true 20 gone "$DAEMON" || fail "the daemon does not die"
wait "$DAEMON"
check "it did not leave" "$(listed)" = 1
daemon_start
check "it does after all" "$(until_true 20 lists 0 && echo yes)" = yes
resume three
contents three
end_swapper three
check_books_empty
finish
