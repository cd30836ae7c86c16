#!/bin/sh
# One number everywhere: cuMemGetInfo, cuDeviceTotalMem and NVML say the same inside a workload,
# whatever the neighbours hold (peer-failures rows 1, 4, 12, 13).
. "$(dirname "$0")/lib.sh"
daemon_start
limit=$((400 << 20))
field() { json -l "when=$2" "$3" <"$T/$1"; }
$RUN --request 100MiB --limit 400MiB -- "$P/meminfo" --bytes 128MiB >"$T/alone"
check "status" $? = 0
for when in before held freed; do
	check "$when: cuMemGetInfo total" "$(field alone $when total_bytes)" = $limit
	check "$when: cuDeviceTotalMem" "$(field alone $when device_total_bytes)" = $limit
	check "$when: NVML total" "$(field alone $when nvml_total_bytes)" = $limit
	check "$when: NVML free is the driver's" "$(field alone $when nvml_free_bytes)" = "$(field alone $when free_bytes)"
	check "$when: NVML adds up" $(($(field alone $when nvml_used_bytes) + $(field alone $when nvml_free_bytes))) = $limit
done
check "128 MiB were taken" $(($(field alone before free_bytes) - $(field alone held free_bytes))) -ge $((128 << 20))
check "and no more than a slab beside" $(($(field alone before free_bytes) - $(field alone held free_bytes))) -le $((132 << 20))
check "and came back" "$(field alone freed free_bytes)" -ge "$(field alone before free_bytes)"
check "the reserve pays the context" "$(field alone before free_bytes)" = $limit
check "it sees its own process" "$(field alone held own_bytes)" -ge $((128 << 20))

$RUN --request 100MiB --limit 0.9 --name neighbour -- "$P/holder" --bytes 300MiB --ms 20000 >"$T/neighbour" &
neighbour=$!
wait_event "$T/neighbour" held
$RUN --request 100MiB --limit 400MiB -- "$P/meminfo" --bytes 64MiB >"$T/beside"
check "free does not depend on the neighbour" "$(field beside before free_bytes)" = "$(field alone before free_bytes)"
kill -KILL $neighbour
check_books_empty

# Memory that may move cannot be registered with other devices; --rdma has what can, and that stays.
check "registration would fail" "$(field beside attributes registrable)" = 0
$RUN --rdma --request 100MiB --name stays -- "$P/meminfo" --bytes 32MiB --hold-ms 60000 >"$T/stays" &
stays=$!
until_true 10 grep -q attributes "$T/stays"
check "with --rdma it would not" "$(field stays attributes registrable)" = 1
"$B/sluice" park stays >"$T/park" 2>&1
check "it is not parked" $? = 75
"$B/sluice" set stays --priority 3 >"$T/priority" 2>&1
check "what else there is can be changed" $? = 0
"$B/sluice" set stays --swap on >"$T/swap-on" 2>&1
check "moving it cannot be switched on" $? != 0
check_file "and that is explained" "$T/swap-on" "start it without --rdma"
kill -KILL $stays
check_books_empty
finish
