#!/bin/sh
# NVML as a workload sees it: its share as the memory, its own processes under the numbers they have for
# themselves, no GPU behind its last one; NVML's own errors, and NVML unchanged for all others
# (peer-failures rows 1, 10, 11, 12, 18, 19, 20).
export BOX="--gpus 3 --memory 1GiB"
export LIMIT=110
. "$(dirname "$0")/lib.sh"
software_only "three GPUs of known size"
daemon_start
"$B/sluice" gpus --json >"$T/gpus"
uuid() { json "$1.uuid" <"$T/gpus"; }
# Of the lines of nvml-view in a file: FILE INDEX FIELD.
mem() { grep "\"what\":\"memory\",\"index\":$2," "$T/$1" | json "$3"; }
procs() { grep "\"what\":\"processes\",\"index\":$2," "$T/$1" | json count; }
pids() { grep "\"what\":\"process\",\"index\":$2," "$T/$1" | sed 's/.*"pid":\([0-9]*\).*/\1/' | sort -n; }
bytes_of() { grep "\"what\":\"process\",\"index\":$2,\"pid\":$3," "$T/$1" | json bytes; }
count() { grep '"what":"count"' "$T/$1" | json count; }
# Memory of a GPU in a file is one number in both versions, with this total.
check_share() {
	check "$1, GPU $2: total" "$(mem "$1" "$2" total)" = "$3"
	check "$1, GPU $2: the same in version 2" "$(mem "$1" "$2" total2) $(mem "$1" "$2" used2) $(mem "$1" "$2" reserved2)" = \
		"$3 $(mem "$1" "$2" used) 0"
	check "$1, GPU $2: BAR1 is the GPU's" "$(mem "$1" "$2" bar)" = "$(mem plain "$2" bar)"
}

# A process without a workload sees the machine.
"$P/nvml-view" >"$T/plain"
check "plain: the versions agree" $? = 0
check "plain: GPUs" "$(count plain)" = 3
check "plain: total" "$(mem plain 0 total)" = $((1024 << 20))

# Two workloads on the first GPU, each with two processes, one of them a monitor without CUDA.
# shellcheck disable=SC2016 # the inner shell expands it
inside='"$0" --bytes "$1" --ms 100000 >"$2.held" & echo $! >"$2.holder"
	while ! grep -qs held "$2.held"; do sleep 0.05; done
	"$3" --uuid "$4" --bus 00000000:12:00.0 >"$2"; echo $? >"$2.status"; sleep "$5"; kill $(cat "$2.holder")'
workload() { # NAME LIMIT BYTES SECONDS
	CUDA_VISIBLE_DEVICES=0 $RUN --name "$1" --request 100MiB --limit "$2" -- sh -c "$inside" "$P/holder" "$3" "$T/$1" "$P/nvml-view" "$(uuid 2)" "$4"
}
workload one 400MiB 100MiB 100 &
until_true 20 test -s "$T/one.status" || fail "the first says nothing"
workload two 500MiB 200MiB 100 &
until_true 20 test -s "$T/two.status" || fail "the second says nothing"
for row in "one 400 100" "two 500 200"; do
	# shellcheck disable=SC2086 # words
	set -- $row
	holder=$(cat "$T/$1.holder")
	check "$1: the versions agree" "$(cat "$T/$1.status")" = 0
	check "$1: GPUs" "$(count "$1")" = 1
	check_share "$1" 0 $(($2 << 20))
	check "$1: its own process and no other" "$(pids "$1" 0 | tr '\n' ' ')" = "$holder "
	# Its context is paid from the reserve of the GPU, and counts against no limit.
	check "$1: which holds what it asked for" "$(bytes_of "$1" 0 "$holder")" = $(($3 << 20))
	check "$1: that is all that is used" "$(bytes_of "$1" 0 "$holder")" = "$(mem "$1" 0 used)"
	check "$1: no GPU by another's UUID" "$(grep '"what":"uuid"' "$T/$1" | json result)" = 6
	check "$1: nor by another's bus" "$(grep '"what":"bus"' "$T/$1" | json result)" = 6
done
# The machine's own view, meanwhile, is what it was: that of the daemon and the command line, too.
"$P/nvml-view" >"$T/outside"
check "outside: both workloads' processes" "$(pids outside 0 | tr '\n' ' ')" = \
	"$(sort -n "$T/one.holder" "$T/two.holder" | tr '\n' ' ')"
check "outside: total" "$(mem outside 0 total)" = $((1024 << 20))
SLUICE_BYPASS=1 LD_PRELOAD=${SLUICE_LIBRARY:-$B/libsluice.so} "$P/nvml-view" >"$T/bypass"
check "bypass is no interposition: total" "$(mem bypass 0 total)" = $((1024 << 20))
check "bypass: processes" "$(pids bypass 0)" = "$(pids outside 0)"
check "the daemon sees the whole GPU" "$(gpu capacity_bytes)" = $((1024 << 20))

# On a later GPU: numbers are the machine's, as CUDA_VISIBLE_DEVICES counts; others' processes are not told.
# shellcheck disable=SC2016
CUDA_VISIBLE_DEVICES=1 $RUN --name masked --request 100MiB --limit 300MiB -- sh -c 'echo "$CUDA_VISIBLE_DEVICES" >"$2.mask"; '"$inside" \
	"$P/holder" 50MiB "$T/masked" "$P/nvml-view" "$(uuid 2)" 0
check "masked: CUDA's number of its GPU" "$(cat "$T/masked.mask")" = 1
check "masked: NVML ends behind it" "$(count masked)" = 2
check "masked: the versions agree" "$(cat "$T/masked.status")" = 0
check_share masked 1 $((300 << 20))
check "masked: GPU 1 is the machine's second" \
	"$(grep '"what":"device","index":1,' "$T/masked" | json uuid)" = "$(uuid 1)"
check "masked: its process" "$(pids masked 1)" = "$(cat "$T/masked.holder")"
check "masked: GPU 0 is another's, and says nothing of its processes" "$(procs masked 0)" = 0
check "masked: GPU 0 is whole" "$(mem masked 0 total)" = $((1024 << 20))
check "masked: no third" "$(grep '"what":"uuid"' "$T/masked" | json result)" = 6

# A limit above the card, and a tiny one, of which the context takes nothing: the reserve pays it (rows 10 and 11).
CUDA_VISIBLE_DEVICES=2 $RUN --limit 4GiB -- "$P/nvml-view" >"$T/large"
check "a limit above the card: total is the card's" "$(mem large 2 total)" -le $((1024 << 20))
CUDA_VISIBLE_DEVICES=2 $RUN --limit 19MiB -- sh -c "$inside" "$P/holder" 1MiB "$T/tiny" "$P/nvml-view" "$(uuid 0)" 0
check "a tiny limit: the versions agree" "$(cat "$T/tiny.status")" = 0
check "a tiny limit: total" "$(mem tiny 2 total)" = $((19 << 20))
check "a tiny limit: free is what it may still have" "$(mem tiny 2 free)" -le $((18 << 20))

# In a pid namespace of its own a workload's processes have other numbers (row 18).
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	CUDA_VISIBLE_DEVICES=2 $RUN --name boxed --request 100MiB --limit 300MiB -- unshare --pid --fork --mount-proc \
		sh -c "$inside" "$P/holder" 50MiB "$T/boxed" "$P/nvml-view" "$(uuid 2)" 0
	check "in a pid namespace: the versions agree" "$(cat "$T/boxed.status")" = 0
	check "in a pid namespace: a number from inside" "$(cat "$T/boxed.holder")" -lt 100
	check "in a pid namespace: NVML says the same" "$(pids boxed 2)" = "$(cat "$T/boxed.holder")"
	check_share boxed 2 $((300 << 20))
else
	note "no pid namespaces here"
fi
# Without the daemon: a process that has joined goes on with what it knows, another waits for it.
# shellcheck disable=SC2016
CUDA_VISIBLE_DEVICES=2 $RUN --name waiting --request 100MiB --limit 300MiB -- sh -c '
	: >"$2.there"; while [ ! -e "$2.go" ]; do sleep 0.05; done
	"$0" --uuid "$1" >"$2"; echo $? >"$2.status"' "$P/nvml-view" "$(uuid 2)" "$T/waiting" &
# The program runs once its workload is in the journal; ps knows it earlier.
until_true 20 test -e "$T/waiting.there" || fail "the workload does not start"
daemon_kill
touch "$T/waiting.go"
sleep 1
check "without a daemon: no answer is a wrong one" "$(test -s "$T/waiting.status" && echo told)" = ""
daemon_start
until_true 20 test -s "$T/waiting.status"
check "the daemon is back: the versions agree" "$(cat "$T/waiting.status")" = 0
check_share waiting 2 $((300 << 20))
check "the daemon is back: nobody but a monitor" "$(pids waiting 2)" = ""
"$B/sluice" stop one >/dev/null
"$B/sluice" stop two >/dev/null
check_books_empty 15
finish
