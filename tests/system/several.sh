#!/bin/sh
# Two GPUs: workloads are put where there is room, each sees only its own and accounts go by UUID, never
# by index; a program for both gets both; the user's own mask is kept (peer-failures rows 2, 19).
export BOX="--gpus 2 --memory 512MiB"
. "$(dirname "$0")/lib.sh"
software_only "two GPUs of known size"
daemon_start
"$B/sluice" gpus --json >"$T/gpus"
check "GPUs" "$(json '#' <"$T/gpus")" = 2
uuid() { json "$1.uuid" <"$T/gpus"; }
$RUN --request 300MiB --name one -- "$P/devices" --bytes 100MiB --hold-ms 60000 --until "$T/end" >"$T/one" &
one=$!
wait_event "$T/one" held
$RUN --request 300MiB --name two -- "$P/devices" --bytes 100MiB --hold-ms 60000 --until "$T/end" >"$T/two" &
two=$!
wait_event "$T/two" held
check "the first sees one GPU" "$(json -l event=held count <"$T/one")" = 1
check "the second sees one GPU" "$(json -l event=held count <"$T/two")" = 1
check "not the same one" "$(json -l device=0 uuid <"$T/one")" != "$(json -l device=0 uuid <"$T/two")"
"$B/sluice" gpus --json >"$T/now"
for name in one two; do
	theirs=$(json -l device=0 uuid <"$T/$name")
	check "$name is booked where it is, MiB" $(($(json "uuid=$theirs.backing_bytes" <"$T/now") >> 20)) -ge 100
	check "$name: and nowhere else, MiB" $(($(json "uuid=$theirs.backing_bytes" <"$T/now") >> 20)) -le 110
done
$RUN --request 300MiB -- true 2>"$T/third"
check "a third does not fit on either" $? = 75
: >"$T/end"
wait $one $two
$RUN --gpus 2 --request 200MiB --name both -- "$P/devices" >"$T/both"
check "a program for both" $? = 0
check "sees both" "$(json -l event=held count <"$T/both")" = 2
check "in the order of the bus" "$(json -l device=0 uuid <"$T/both")$(json -l device=1 uuid <"$T/both")" = "$(uuid 0)$(uuid 1)"
check "with its limit on each" "$(json -l device=1 total_bytes <"$T/both")" = $((200 << 20))
CUDA_VISIBLE_DEVICES=1 $RUN --request 100MiB -- "$P/devices" >"$T/mask"
check "the user's mask is kept" "$(json -l device=0 uuid <"$T/mask")" = "$(uuid 1)"
CUDA_VISIBLE_DEVICES=$(uuid 0) $RUN --request 100MiB -- "$P/devices" >"$T/mask"
check "by UUID as well" "$(json -l device=0 uuid <"$T/mask")" = "$(uuid 0)"
$RUN --gpus 3 -- true 2>"$T/three"
check "three GPUs there are not" $? = 75
check_books_empty
finish
