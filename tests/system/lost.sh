#!/bin/sh
# A GPU falls off the bus while workloads run on it: waiting programs there are told, others notice
# nothing, no new one is sent there, and it is used again when it is back.
export BOX="--gpus 2 --memory 1GiB"
export LIMIT=110
. "$(dirname "$0")/lib.sh"
software_only "a GPU that can be lost"
config 'measure_interval: 100ms'
config 'resolvers: wait'
daemon_start
why() { "$B/sluice" why "$1" --json; }
happened() { [ "$("$B/sluice" events --json | grep -c "\"reason\": \"$1\"")" -ge "${2:-1}" ]; }
is_lost() { [ "$(gpu lost)" = 1 ]; }
not_lost() { [ "$(gpu lost)" = 0 ]; }

CUDA_VISIBLE_DEVICES=0 $RUN --request 0 --limit 0.9 --name holds -- "$P/tenant" --bytes 700MiB --ms 60000 >"$T/holds" &
holds=$!
wait_event "$T/holds" held
CUDA_VISIBLE_DEVICES=0 $RUN --request 0 --limit 0.9 --name waits -- "$P/tenant" --bytes 400MiB --ms 60000 >"$T/waits" &
waits=$!
CUDA_VISIBLE_DEVICES=1 $RUN --request 0.5 --name elsewhere -- "$P/tenant" --bytes 400MiB --work 20 --term finish --ms 100000 >"$T/elsewhere" &
elsewhere=$!
wait_event "$T/elsewhere" held
is_waiting() { [ "$(gpu waiting)" = 1 ]; }
until_true 30 is_waiting
check "one waits" "$(gpu waiting)" = 1

"$B/sluice" softgpu --lose 0
until_true 30 is_lost
check "the GPU is lost" "$(gpu lost)" = 1
check "the other is not" "$("$B/sluice" gpus --json | json 1.lost)" = 0
wait $waits
check "who waited ended" $? != 0
check_file "it was told an error" "$T/waits" '"event":"error"'
check "and not out of memory" "$(grep -c OUT_OF_MEMORY "$T/waits")" = 0
for reason in XID_OF_GPU LOST_BEGINS LOST_FOR GPU_LOST; do
	happened $reason
	check "event $reason" $? = 0
done
why holds >"$T/why"
check_file "why says it is lost" "$T/why" 'LOST'
"$B/sluice" ps >"$T/ps"
check_file "ps says it of who is on it" "$T/ps" ' holds .* gpu lost '
check "and of nobody else" "$(grep -c 'gpu lost' "$T/ps")" = 1
check "ps in JSON" "$(use holds gpu_lost)$(use elsewhere gpu_lost)" = 10
"$B/sluice" gpus >"$T/gpus"
check "nothing of it is free" "$(gpu free_bytes)" = 0
check_file "and no figure looks healthy" "$T/gpus" ' - +- +lost$'
# No new workload is sent there.
"$B/sluice" run --request 0 --limit 0.5 --gpus 2 -- true 2>"$T/two"
check "two GPUs are refused" $? != 0
check_file "with how many can be used" "$T/two" '2 GPUs wanted, and 1 of the 2 that sluiced manages can be used: 1 is lost'
CUDA_VISIBLE_DEVICES=0 "$B/sluice" run --request 0 --limit 0.5 -- true 2>"$T/that"
check "that GPU is refused" $? != 0
check_file "with why" "$T/that" '1 GPU wanted, and 0 of the 2 .* under CUDA_VISIBLE_DEVICES: 1 is lost'
$RUN --request 0 --limit 0.4 --name new -- "$P/tenant" --bytes 64MiB --ms 100 >"$T/new"
check "a new one runs on the other" $? = 0
check "the one elsewhere lives" "$(gone $elsewhere && echo gone)" = ""

# The programs on it are stopped by their users; then it comes back.
kill -KILL $holds
wait $holds 2>/dev/null
"$B/sluice" softgpu --revive 0
until_true 30 not_lost
check "the GPU is back" "$(gpu lost)" = 0
happened LOST_ENDS
check "event LOST_ENDS" $? = 0
CUDA_VISIBLE_DEVICES=0 $RUN --request 0.5 --name after -- "$P/tenant" --bytes 400MiB --ms 100 >"$T/after"
check "it is used again" $? = 0
kill -TERM $elsewhere
wait $elsewhere
check "the one elsewhere noticed nothing" $? = 0
check "its bytes" "$(json -l event=end wrong <"$T/elsewhere")" = 0

# An error of one process is told, and that is all.
"$B/sluice" softgpu --xid 0:31
until_true 20 happened XID_OF_PROCESS
check "event XID_OF_PROCESS" $? = 0
check "not lost" "$(gpu lost)" = 0
check_books_empty
daemon_stop
check "the daemon ends well" $? = 0
finish
