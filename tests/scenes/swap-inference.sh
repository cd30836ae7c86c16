#!/bin/sh
# Training fills the GPU in the background, at a lower priority. Inference comes and gets its place at once; the
# training goes to the host, comes back when inference pauses and when it has ended, and loses nothing.
# Off: nothing is moved to the host.
export BOX='--gpus 1 --memory 1GiB'
export LIMIT=110
. "$(dirname "$0")/lib.sh"
on config 'host_memory: 2GiB'
off config 'host_memory: 0'
# No turn ends by itself while this lasts: memory leaves only for the server.
config 'turn_max: 60s'
off config 'longest_wait: 1s'
daemon_start
start train --request 0 --limit 0.95 --priority -10 -- "$P/tenant" --bytes 750MiB --work 90 --term finish --ms 150000
train=$PID
wait_event "$T/train" held
# A line is a request; it pauses until the next one.
mkfifo "$T/requests"
exec 8<>"$T/requests"
"$B/sluice" run --name serve --request 0.1 --limit 0.8 --priority 10 -- "$P/model-server" --weights 256MiB --item 32MiB \
	--touch 64KiB --batch-max 4 --requests 5 --asked 1 <"$T/requests" >"$T/serve" 2>"$T/serve.err" &
serve=$!
answers() { json -n event=request <"$T/serve"; }
answered() { [ "$(answers)" -ge "$1" ] || gone $serve; }
restored() { "$B/sluice" events --name train --json | grep -c RESTORED; }
came_back() { [ "$(restored)" -gt "$1" ] || gone $serve; }
pauses=0
for request in 1 2 3 4; do
	before=$(restored)
	echo request >&8
	until_true 40 answered $request
	# Moved out of the way of the answer, if it was back before.
	on until_true 20 came_back $before
	gone $serve || [ "$(restored)" = "$before" ] || pauses=$((pauses + 1))
done
echo request >&8
status $serve
exec 8>&-
promise "the server answers all" $STATUS = 0
promise "its answers are right" "$(json -l event=end wrong <"$T/serve" 2>/dev/null || echo none)" = 0
promise "training was moved out of its way" "$("$B/sluice" events --name train --json | grep -c EVICTED_FOR)" -ge 1
promise "and came back while the server had nothing to do" "$pauses" -ge 1
promise "and lives" "$(kill -0 $train 2>/dev/null && echo yes)" = yes
kill -TERM $train
status $train
check "training ends well" $STATUS = 0
check "and lost nothing" "$(json -l event=end wrong <"$T/train")" = 0
scene_finish
