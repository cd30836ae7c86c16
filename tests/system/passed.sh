#!/bin/sh
# Memory that the driver itself keeps for a program is bounded, waited for, shown and given back like any
# other: arrays, mipmapped arrays, managed memory, pools, graphs' memory (peer-failures rows 7, 8, 9, 12,
# 13, 15: graphs neither break nor escape the limit, by nodes or by capture).
export BOX="--gpus 1 --memory 1GiB --context 16MiB --module 4MiB" LIMIT=200
. "$(dirname "$0")/lib.sh"
software_only "sizes of contexts that are known"
echo 'longest_wait: 20s' >"$CONFIG"
daemon_start
mib=1048576
KINDS="array array3d mipmap managed pool own-pool graph captured"

field() { json -l "event=$2" "$3" <"$T/$1"; }
# The limit is a smaller GPU: out of memory by that name and no other (row 9), not sticky, and every
# figure agrees at once (row 12).
for kind in $KINDS; do
	$RUN --limit 256MiB --name "k-$kind" -- "$P/keeper" --kind $kind --rounds 3 >"$T/$kind"
	check "$kind: it ends well" $? = 0
	check "$kind: what ended it (row 9)" "$(field $kind took result)" = CUDA_ERROR_OUT_OF_MEMORY
	took=$(field $kind took bytes)
	check "$kind: within the limit" "$took" -le $((256 * mib))
	check "$kind: and most of it" "$took" -ge $((208 * mib))
	before=$(field $kind start free_bytes)
	after=$(field $kind took free_bytes)
	check "$kind: cuMemGetInfo shows it (row 12)" $((before - after)) -ge $((took - 2 * mib))
	check "$kind: so does NVML" "$(field $kind took nvml_used_bytes)" -ge $((took - 2 * mib))
	check "$kind: NVML's total is the limit" "$(field $kind took nvml_total_bytes)" = $((256 * mib))
	check "$kind: freed bytes come back (row 7)" "$(field $kind freed free_bytes)" -ge $((before - 8 * mib))
done
check_books_empty
# Pools that keep what is freed: charged until they are trimmed, and not by their high-water mark (row 8).
$RUN --limit 256MiB -- "$P/keeper" --kind own-pool --keep --rounds 3 >"$T/keep"
check "a pool that keeps its memory" $? = 0
check "and gives it back when trimmed (row 8)" "$(field keep freed free_bytes)" -ge $(($(field keep start free_bytes) - 8 * mib))

# Shown by ps while it is held, as the workload's own; gone with a reset, and with the process.
for kind in $KINDS; do
	: >"$T/shown"
	$RUN --limit 512MiB --name shown -- "$P/keeper" --kind $kind --max 128MiB --hold-ms 20000 >"$T/shown" &
	pid=$!
	wait_event "$T/shown" took
	check "$kind: ps shows it" "$(use shown backing_bytes)" -ge $((126 * mib))
	check "$kind: and little beside it is hidden (row 13)" "$(use shown hidden_bytes)" -le $((64 * mib))
	kill -KILL $pid
	wait $pid 2>/dev/null
	check_books_empty
done
for kind in array managed pool; do
	$RUN --limit 256MiB -- "$P/keeper" --kind $kind --reset --rounds 3 >"$T/reset"
	check "$kind: a reset gives all back" $? = 0
done
check_books_empty

# Within its request a workload waits for a neighbour that will be gone, and never hears of it.
for kind in $KINDS; do
	: >"$T/hog"
	$RUN --request 0 --limit 1.0 --name hog -- "$P/memhog" --piece 4MiB --hold-ms 1500 >"$T/hog" &
	hog=$!
	wait_event "$T/hog" took
	$RUN --request 300MiB --name owed -- "$P/keeper" --kind $kind --max 200MiB --least 200MiB >"$T/owed"
	check "$kind: within its request it waits" $? = 0
	wait $hog
done
check_books_empty

# A call of the driver that fails leaves the books as if it had not been made.
for plan in array:cuArrayCreate_v2 array3d:cuArray3DCreate_v2 mipmap:cuMipmappedArrayCreate \
	managed:cuMemAllocManaged \
	graph:cuGraphInstantiateWithFlags graph:cuGraphLaunch; do
	kind=${plan%%:*}
	: >"$T/faulty"
	SLUICE_SOFTGPU_FAULTS="${plan#*:}:5=unknown" $RUN --limit 512MiB --name faulty -- \
		"$P/keeper" --kind "$kind" --max 128MiB --hold-ms 20000 >"$T/faulty" 2>/dev/null &
	pid=$!
	wait_event "$T/faulty" took
	check "$plan: the error is the driver's" "$(field faulty took result)" = CUDA_ERROR_UNKNOWN
	check "$plan: four were made" "$(field faulty took bytes)" = $((32 * mib))
	check "$plan: four are charged" "$(use faulty backing_bytes)" -le $((36 * mib))
	check "$plan: no less" "$(use faulty backing_bytes)" -ge $((32 * mib))
	kill -KILL $pid
	wait $pid 2>/dev/null
	# Out of memory in spite of the grant is not shown to the program.
	SLUICE_SOFTGPU_FAULTS="${plan#*:}:3=oom" $RUN --limit 512MiB -- \
		"$P/keeper" --kind "$kind" --max 64MiB --least 64MiB >"$T/again"
	check "$plan: one refusal by the driver is not the program's" $? = 0
done
check_books_empty
finish
