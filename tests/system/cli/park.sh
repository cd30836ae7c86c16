#!/bin/sh
# park, resume and --warm-after: what the daemon is told, what is waited for, what is said, and daemons
# that refuse.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

fake park 2>"$work/told"
told() { grep -v fake-daemon "$work/told" | tail -n 1; }

# --- to the host and back; the fake one moves a gibibyte per look, and half a gibibyte is held
expect 'park' 0 '^a-model-server-1 is parked: 2.5 GiB on the host, 2.5 GiB copied, in [0-9.]*m*s$' \
	"$sluice" park a-model-server-1
same 'park' "$(told)" 'PARK workload=2 name=a-model-server-1 parked=1'
same 'park: what stays' "$(tail -n 1 "$work/out")" '512 MiB of it cannot be moved and stay on the GPUs.'
expect 'resume' 0 '^a-model-server-1 is back: 2.5 GiB copied to its GPUs, in [0-9.]*m*s$' \
	"$sluice" resume a-model-server-1
same 'resume' "$(told)" 'PARK workload=2 name=a-model-server-1 parked=0'
expect 'park: by id' 0 '^a-model-server-1 is parked' "$sluice" park 2
expect 'resume: without a wait' 0 '^a-model-server-1 is being resumed$' "$sluice" resume --no-wait 2
expect 'park: without a wait' 0 '^a-model-server-1 is being parked$' "$sluice" park 2 --no-wait
expect 'resume: JSON' 0 '"parked": false' "$sluice" resume 2 --json
if command -v python3 >/dev/null; then
	json() { python3 -c "import json, sys; d = json.load(open('$work/out')); print($1)"; }
	same 'resume: JSON' "$(json 'd["ok"], d["done"], d["workload"], d["evicted_bytes"], d["moved_bytes"] > 0, "span_ms" in d')" \
		'True True 2 0 True True'
	expect 'park: JSON' 0 '"parked": true' "$sluice" park 2 --json --no-wait
	same 'park: JSON' "$(json 'd["ok"], d["done"], d["held_bytes"], d["name"], "moved_bytes" in d')" \
		'True False 536870912 a-model-server-1 False'
fi
expect 'park: nobody' 64 'no NAME' "$sluice" park
expect 'park: two' 0 '^a-model-server-1 is being parked$' "$sluice" park --no-wait 2 a-model-server-1
expect 'park: unknown' 75 "no workload 'a-model-sever-1'; did you mean 'a-model-server-1'?" "$sluice" park a-model-sever-1
expect 'resume: unknown, as JSON' 75 '^{"ok": false, "exit": 75, "error": "there is no workload' "$sluice" resume zzz --json

# --- --warm-after and --idle-grace; of the flags 2048: never, 4096: a grace is set
sent_times() { tail -n 1 "$work/told" | grep -o '^[A-Z]*\|which=[0-9]*\|flags=[0-9]*\|warm=[0-9]*\|grace=[0-9]*' | tr '\n' ' '; }
expect 'run: warm' 0 '' "$sluice" run --warm-after 10m -- true
same 'run: warm' "$(sent_times)" 'RUN flags=0 warm=600000 grace=0 '
expect 'run: never' 0 '' "$sluice" run --warm-after 0 -- true
same 'run: never' "$(sent_times)" 'RUN flags=2048 warm=0 grace=0 '
expect 'run: grace' 0 '' "$sluice" run --idle-grace 5s -- true
same 'run: grace' "$(sent_times)" 'RUN flags=4096 warm=0 grace=5000 '
expect 'run: no grace' 0 '' "$sluice" run --idle-grace 0 --warm-after 1s -- true
same 'run: no grace' "$(sent_times)" 'RUN flags=4096 warm=1000 grace=0 '
expect 'run: stays' 64 '--warm-after and --keep-resident exclude each other' "$sluice" run --keep-resident --warm-after 1s -- true
expect 'run: stays and goes' 64 '--keep-resident and --swap on exclude each other' "$sluice" run --keep-resident --swap on -- true
expect 'set: grace' 0 '^a-model-server-1: .*, idle grace 90s$' "$sluice" set a-model-server-1 --idle-grace 90s
expect 'run: too short' 64 'warm-after 0.5ms is less than 1ms; write 0 or at least 1ms$' "$sluice" run --warm-after 0.5ms -- true
expect 'run: not to be moved' 64 '--warm-after and --swap off exclude each other' "$sluice" run --swap off --warm-after 1s -- true
expect 'run: registered' 64 '--warm-after and --rdma exclude each other' "$sluice" run --rdma --warm-after 1s -- true
expect 'set: too short' 64 'warm-after 0.5ms is less than 1ms; write 0 or at least 1ms$' "$sluice" set a-model-server-1 --warm-after 0.5ms
expect 'set: not to be moved' 64 '--warm-after and --swap off exclude each other' "$sluice" set a-model-server-1 --swap off --warm-after 1s
expect 'set: warm' 0 '^a-model-server-1: .*, warm after 90s$' "$sluice" set a-model-server-1 --warm-after 90s
same 'set: warm' "$(sent_times)" 'SET which=32 flags=0 warm=90000 grace=0 '
expect 'set: never' 0 ', never warm for being idle$' "$sluice" set a-model-server-1 --priority 3 --warm-after 0
same 'set: both' "$(sent_times)" 'SET which=36 flags=0 warm=0 grace=0 '
expect 'set: warm, as JSON' 0 '"warm_after_ms": 1500' "$sluice" set a-model-server-1 --warm-after 1500ms --json

# --- what is in the way is found, and an interruption takes nothing back
fake stuck 2>"$work/stuck"
"$sluice" park 2 >"$work/out" 2>"$work/err" &
pid=$!
tries=0
until grep -q "'sluice why a-model-server-1' says what is in the way" "$work/err"; do
	tries=$((tries + 1))
	[ $tries -gt 500 ] && { fail 'park says nothing'; break; }
	sleep 0.02
done
kill -TERM $pid
wait $pid 2>/dev/null
same 'park: interrupted' $? 143
same 'park: says what goes on' "$(tail -n 1 "$work/err")" \
	"sluice park: interrupted; the daemon goes on. To undo it: sluice resume a-model-server-1"
same 'park: claims nothing' "$(cat "$work/out")" ''

# --- a daemon that refuses
fake refuse
expect 'park refused' 75 '^sluice park: refused: x cannot be parked: its 3 GiB do not fit?\[2J in the 1 GiB left$' \
	"$sluice" park a-model-server-1
expect 'park refused, with a hint' 75 '^(sluice doctor shows what uses it)$' "$sluice" park a-model-server-1
expect 'park refused, as JSON' 75 '^{"ok": false, "exit": 75, "reason": "PARK_NO_POOL"' "$sluice" park 2 --json
finish
