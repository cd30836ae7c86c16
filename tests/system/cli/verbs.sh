#!/bin/sh
# set, stop, why, events and dump: what the daemon is told, what is shown, and daemons that are old,
# die half-way or start anew.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

fake lists 2>"$work/told"
told() { tail -n 1 "$work/told"; }
escapes() { tr -dc '\033\200-\377' <"$work/out" | wc -c; }

# --- set
expect 'set' 0 '^a-model-server-1: request 1 GiB, limit 2 GiB, priority -4$' "$sluice" set a-model-server-1 --request 1GiB
same 'set: the request alone' "$(told)" \
	'SET workload=2 name=a-model-server-1 which=1 flags=0 request=2:1073741824 limit=0:0 priority=-4 wait=0 warm=0 grace=0'
expect 'set: all' 0 'priority 9, no swap, out-of-memory first, longest wait 90s$' "$sluice" set --limit 0.5 2 --request=0.25 --priority 9 \
	--swap off --oom-first on --longest-wait 90s
same 'set: all' "$(told)" \
	'SET workload=2 name=a-model-server-1 which=31 flags=3 request=1:250000 limit=1:500000 priority=9 wait=90000 warm=0 grace=0'
expect 'set: back to the longest wait of the daemon' 0 ", longest wait the daemon's$" "$sluice" set a-model-server-1 --longest-wait 0
same 'set: back' "$(told | cut -d' ' -f4,9)" 'which=16 wait=0'
expect 'set: resolvers' 0 ', on collision wait,swap$' "$sluice" set a-model-server-1 --on-collision wait,swap
same 'set: resolvers' "$(told | cut -d' ' -f4,5)" 'which=1024 flags=1179648'
expect 'set: no resolver' 64 "on-collision: 'stop' is no resolver; write swap, wait, priority or fail" "$sluice" set x --on-collision wait,stop
expect 'set: below what it holds' 0 '^It holds 1.25 GiB above its limit.* stops it first' \
	"$sluice" set a-model-server-1 --limit 2GiB
expect 'set: nothing' 64 'nothing to change; give at least one of --request, --limit, --compute-request, --compute-limit, --priority, --keep-resident, --swap, --oom-first, --on-collision, --longest-wait, --warm-after, --detach-after, --idle-grace$' \
	"$sluice" set a-model-server-1
expect 'set: no share' 64 "compute-request 1GiB is no share" "$sluice" set a --compute-request 1GiB
expect 'set: shares that contradict each other' 64 'is below --compute-request' "$sluice" set a --compute-request 0.5 --compute-limit 0.2
expect 'set: nobody' 64 'no NAME' "$sluice" set --limit 1GiB
expect 'set: two' 64 "unexpected word 'b'" "$sluice" set a --limit 1GiB b
expect 'set: limit below request' 64 'limit 1GiB is below --request 2GiB' "$sluice" set x --request 2GiB --limit 1GiB
expect 'set: a small request is no limit' 0 '' "$sluice" set a-model-server-1 --request 1MiB
expect 'set: neither on nor off' 64 "swap 'maybe': write on or off" "$sluice" set x --swap maybe
expect 'set: too long' 64 'longest-wait 25h is not within 0s to 24h$' "$sluice" set x --longest-wait 25h
expect 'set: unknown' 75 "no workload 'a-model-sever-1'; did you mean 'a-model-server-1'?" \
	"$sluice" set a-model-sever-1 --limit 1GiB
expect 'set: unknown, as JSON' 75 '^{"ok": false, "exit": 75, "error": "there is no workload' \
	"$sluice" set zzz --json --limit 1GiB
expect 'set: JSON' 0 '"over_bytes": 1342177280' "$sluice" set a-model-server-1 --limit 1GiB --json

# --- stop
expect 'stop' 0 "^a-model-server-0: SIGTERM to 2 processes, and SIGKILL when the daemon's stop_grace is over$" \
	"$sluice" stop a-model-server-0
same 'stop' "$(told)" 'STOP workload=1 name=a-model-server-0 grace=4294967295'
expect 'stop: grace' 0 'SIGKILL after 1500ms$' "$sluice" stop a-model-server-0 --grace 1500ms
same 'stop: grace' "$(told)" 'STOP workload=1 name=a-model-server-0 grace=1500'
expect 'stop: now' 0 ': SIGTERM to 2 processes, and SIGKILL at once$' "$sluice" stop --now a-model-server-0
same 'stop: now' "$(told)" 'STOP workload=1 name=a-model-server-0 grace=0'
expect 'stop: both' 64 'now leaves no --grace' "$sluice" stop --now a --grace 3s
expect 'stop: JSON' 0 '"processes": 2' "$sluice" stop a-model-server-0 --json
expect 'stop: unknown' 75 'there is no workload' "$sluice" stop zzz

# --- why
expect 'why: waits' 0 '^srv?\[31m has waited 12.5s for 300 MiB .* note?book? has 2 GiB above its request\.$' \
	"$sluice" why a-model-server-2
same 'why: what it waits for comes first' "$(sed -n 2p "$work/out")" 'Before:'
same 'why: no bytes of others' "$(escapes)" 0
expect 'why: what was, with its age' 0 '^ *[0-9]*d ago  srv?\[31m waited 12.5s' "$sluice" why 3
expect 'why: nothing' 0 \
	'^a-model-server-1 runs on GPU 1: 3.25 GiB of request 4 GiB, limit 12 GiB; nothing is in its way\.$' \
	"$sluice" why a-model-server-1
expect 'why: ended' 0 '^srv?\[31m has ended\.$' "$sluice" why ended
expect 'why: unknown' 75 "did you mean 'a-model-server-1'" "$sluice" why a-model-server1
expect 'why: JSON' 0 '"reason": "BURST_WAITS"' "$sluice" why a-model-server-2 --json
if command -v python3 >/dev/null; then
	json() { python3 -c "import json, sys; d = json.load(open('$work/out')); print($1)"; }
	same 'why: JSON' "$(json 'd["in_its_way"], len(d["now"]), d["before"][0]["age_ms"] > 0, d["now"][0]["name"]')" \
		"True 1 True $(printf 'srv\033[31m')"
fi

# --- events
expect 'events' 0 '^20.*:.*\.16.  stop    process 77 of srv?\[31m was stopped: note?book?, of higher priority,' \
	"$sluice" events
same 'events: four lines' "$(wc -l <"$work/out")" 4
same 'events: no bytes of others' "$(escapes)" 0
expect 'events: how many are lost' 0 '^(7 events before this one are not kept)$' "$sluice" events
expect 'events: of a newer daemon' 0 'reason 9999, which a newer sluice than this one can explain' "$sluice" events
expect 'events: filters' 0 '' "$sluice" events --last 5 --name n
same 'events: filters' "$(told)" 'EVENTS after=0 last=5 flags=0 name=n'
expect 'events: JSON' 0 '^{.*"reason": "STOP_PRIORITY", .*"kind": "stop", "sentence": "process 77 .*"other_bytes": 2147483648, .*}$' \
	"$sluice" events --json
if command -v python3 >/dev/null; then
	same 'events: each line is JSON' "$(python3 -c "
import json
print([json.loads(line)['serial'] for line in open('$work/out')])")" '[41, 42, 43]'
fi
# Follows what happens, and ends well on an interruption.
interrupted() {
	: >"$work/follow" # what an earlier one said is not this one's
	"$sluice" events "$@" >"$work/follow" 2>"$work/follow.err" &
	pid=$!
	tries=0
	until grep -q 'ended after' "$work/follow"; do
		tries=$((tries + 1))
		[ $tries -gt 500 ] && { fail "events $*: $(cat "$work/follow" "$work/follow.err")"; break; }
		sleep 0.02
	done
	kill -TERM $pid
	wait $pid
}
expect 'events -f: ends well' 0 '' interrupted -f
same 'events -f: what came later' "$(tail -n 1 "$work/follow" | cut -c 25-)" "$(printf ' note    srv?[31m ended after 12.5s')"
expect 'events --follow --json' 0 '' interrupted --follow --json
rows=$((rows + 1))
timeout 20 sh -c "'$sluice' events -f | head -n 1" >"$work/head" || fail "events -f does not end with its reader"

# --- dump
expect 'dump' 0 '^{"gpus": \[1, 2\], "more": true}$' "$sluice" dump
expect 'dump: a word' 64 "unexpected word 'x'" "$sluice" dump x

# --- a daemon that refuses
fake refuse
expect 'set refused' 75 '^sluice set: refused: a limit of 64 GiB exceeds?\[2J what the administrator allows$' \
	"$sluice" set a-model-server-1 --limit 64GiB
expect 'set refused, as JSON' 75 '^{"ok": false, "exit": 75, "reason": "BOUND_LIMIT", "error": "a limit' \
	"$sluice" set a-model-server-1 --limit 64GiB --json
expect 'stop refused' 75 'refused: it has just ended' "$sluice" stop a-model-server-1

# --- a daemon that dies in its answer
fake half
expect 'events cut' 69 'ended the connection' "$sluice" events
expect 'dump cut' 69 'ended the connection' "$sluice" dump
same 'a cut dump is not printed' "$out" ''
fake bad-dump
expect 'a dump that is no JSON' 76 'is no JSON' "$sluice" dump
same 'a bad dump is not printed' "$out" ''

# --- a daemon that starts anew under a reader
fake restart 2>"$work/restarts"
"$sluice" events -f >"$work/follow" 2>"$work/follow.err" &
pid=$!
tries=0
until [ "$(grep -c EVENTS "$work/restarts")" -ge 3 ]; do
	tries=$((tries + 1))
	[ $tries -gt 500 ] && { fail "events -f does not come back: $(cat "$work/follow.err")"; break; }
	sleep 0.02
done
kill -INT $pid 2>/dev/null
kill -TERM $pid
wait $pid
same 'restart: status' $? 0
same 'restart: a new daemon is asked for all it has' "$(sed -n 2p "$work/restarts")" 'EVENTS after=0 last=0 flags=1 name='
same 'restart: said once each' "$(sed -n 1,2p "$work/follow.err")" \
	'sluice events: the daemon went away; waiting for the next one
sluice events: connected again; events in between may be missing'
finish
