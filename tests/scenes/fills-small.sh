#!/bin/sh
# The GPU is so small that two contexts use up its reserve. A program that fills its limit of 1.0 is never left beside
# a context with which it could not be whole: the newcomer waits until it has ended.
# Off: the same programs on the bare GPU.
export BOX='--gpus 1 --memory 256MiB'
. "$(dirname "$0")/lib.sh"
# ends NAME PID WHAT: well, and soon; what hangs is ended.
ends() {
	if ! until_true 20 gone "$2"; then
		note "$1 hangs: $("$B/sluice" why "$1" 2>&1 | head -n 2)"
		kill -KILL "$2" 2>/dev/null
	fi
	status "$2"
	promise "$3 ends well" $STATUS = 0
}

off native
on daemon_start
start fills --request 0.5 --limit 1.0 -- "$P/tenant" --bytes 224MiB --work 5 --ms 4000
fills=$PID
wait_event "$T/fills" held
start new --wait --request 0.3 --limit 1.0 -- "$P/tenant" --bytes 16MiB --work 1 --term finish --ms 300000
new=$PID
ends fills $fills "a program that fills its limit"
came new $new held >"$T/came"
kill -TERM $new 2>/dev/null
ends new $new "its neighbour"

# A second process of the program itself waits as well, before it makes its context.
cat >"$T/both.sh" <<'END'
"$1" --bytes 224MiB --work 5 --ms 4000 & first=$!
sleep 2
"$1" --bytes 4MiB --work 1 --ms 300 || exit 1
wait $first
END
start both --request 0.5 --limit 1.0 -- sh "$T/both.sh" "$P/tenant"
ends both $PID "a program of two processes, of which one fills its limit,"
scene_finish
