#!/bin/sh
# Moves that cannot be, or not as told: two orders at once, a full host, a lost GPU, a user without rights, an old
# driver. Each says why, and nothing is lost.
export BOX='--gpus 2 --memory 1GiB --context 8MiB --module 1MiB'
export LIMIT=150
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a GPU that is lost"
chmod 755 "$T"
config 'detach_contexts: yes'
config 'host_memory: 2GiB'
daemon_start

note "--- two orders at once"
swapper one --request 0.3
ok one alloc a 200m
ok one fill a 1
for _ in 1 2 3; do
	for number in 0 1; do
		"$B/sluice" move one --gpu $number --no-wait >"$T/move.$number" 2>&1 &
	done
	# shellcheck disable=SC2046 # a list of pids is meant
	wait $!
	sleep 0.3
	until_true 40 is_at one bound || fail "it is not back: $(residency one): $("$B/sluice" why one)"
	contents one "after two orders"
	check "the driver and the books agree" "$(where one)" = "$(use one gpu)"
done

note "--- a host without room"
sed -i 's/^host_memory: 2GiB/host_memory: 100MiB/' "$CONFIG"
kill -HUP "$DAEMON"
from=$(where one)
until_true 10 sh -c "! $B/sluice move one --gpu $((1 - from)) --no-wait" >/dev/null 2>&1 || fail "it is not refused"
move one --gpu $((1 - from))
check "refused" $? != 0
check_file "says why" "$T/move.out" 'the host has no room|host memory'
until_true 20 is_at one bound || fail "it is not bound: $(residency one)"
is_on one "$from" || fail "it is elsewhere"
contents one
sed -i 's/^host_memory: 100MiB/host_memory: 2GiB/' "$CONFIG"
kill -HUP "$DAEMON"

note "--- another user"
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$B/sluice"; then
	setpriv --reuid=65534 --regid=65534 --clear-groups "$B/sluice" move one --gpu $((1 - from)) >"$T/move.out" 2>&1
	check "is refused" $? != 0
	check_file "and told why" "$T/move.out" 'belongs to'
fi

note "--- its GPU is lost while it is away"
until_true 10 "$B/sluice" park one >"$T/park.out" 2>&1 || fail "cannot park it: $(cat "$T/park.out")"
until_true 20 is_on one '' || fail "it is still on GPU $(where one)"
"$B/sluice" softgpu --lose "$from" || fail "the GPU is not lost"
is_lost() { "$B/sluice" gpus --json | json "$from.state" | grep -q lost; }
until_true 20 is_lost || note "$("$B/sluice" gpus --json | json "$from.state")"
move one --gpu $((1 - from))
check "it is refused" $? != 0
check_file "and says why" "$T/move.out" 'its GPU is lost'
kill_swapper one

note "--- an old driver"
cat >"$T/old" <<'OLD'
printf 'detach_contexts: yes\n' >"$T/old.config"
export SLUICE_SOCKET="$T/old.s"
"$B/sluiced" --config "$T/old.config" --socket "$T/old.s" --state "$T/old.state" 2>"$T/old.log" &
until "$B/sluice" gpus >/dev/null 2>&1; do sleep 0.05; done
"$B/sluice" run --name old -- "$P/holder" --bytes 50MiB --ms 20000 >"$T/old.held" &
until grep -q held "$T/old.held"; do sleep 0.05; done
"$B/sluice" move old --gpu $((1 - $("$B/sluice" ps --json | "$B/tests/system/json-get" name=old.gpu)))
echo "status $?"
OLD
export B P T
timeout 30 "$B/sluice" softgpu --gpus 2 --memory 1GiB --cuda 12040 -- sh "$T/old" >"$T/old.out" 2>&1
check_file "is refused" "$T/old.out" 'status [1-9]'
check_file "and told why" "$T/old.out" 'from version 580 on'
finish
