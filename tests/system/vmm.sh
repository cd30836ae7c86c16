#!/bin/sh
# The program's own handles, as frameworks use them: bare and under Sluice with the same outcome, charged
# to the byte, given back whole, whatever fails or dies.
export LIMIT=220
export BOX="--gpus 2 --memory 1GiB"
. "$(dirname "$0")/lib.sh"
software_only "two GPUs of known size"
config 'resolvers: wait'
daemon_start
U="$P/vmm-user"
MIB=1048576
# same WAY [OPTIONS]: right bare, right under Sluice, books empty after it.
same() {
	way=$1
	shift
	"$U" --do "$way" "$@" >"$T/bare.$way" 2>&1
	check "$way: bare" $? = 0
	$RUN --request 0.5 --limit 1.0 --gpus 2 -- "$U" --do "$way" "$@" >"$T/out.$way" 2>&1
	check "$way: under Sluice" $? = 0
	check_books_empty
}

# PyTorch's way. What is unmapped after its release is free at once.
same expandable --bytes 128MiB
full=$(json -l event=full free <"$T/out.expandable")
half=$(json -l event=half free <"$T/out.expandable")
empty=$(json -l event=empty free <"$T/out.expandable")
check "half of it is back after an unmap" $((half - full)) -ge $((64 * MIB))
check "and no more" $((half - full)) -le $((64 * MIB))
check "all of it after the other" $((empty - full)) -ge $((128 * MIB))

# NCCL's way: two processes, two devices (peer-failures row 2).
same share --bytes 64MiB --devices 2
same crowd --threads 64
same fork --bytes 32MiB
same peers --bytes 32MiB
check_file "memory closed to a peer is closed" "$T/out.peers" '"closed","wrong":0'

# peer-failures row 2: host locations with an id of no meaning; the same answers, and no GPU pays.
same host --bytes 16MiB
grep '"location"' "$T/bare.host" >"$T/bare.locations"
grep '"location"' "$T/out.host" >"$T/out.locations"
check "locations are judged alike" "$(cmp -s "$T/bare.locations" "$T/out.locations" && echo yes)" = yes
check "there is such a location" "$(grep -c SUCCESS "$T/out.locations")" -ge 1
check "host memory takes nothing from the GPU" "$(json -l event=host free <"$T/out.host")" = \
	"$(json -l event=before free <"$T/out.host")"

# Charged while it is only mapped; killed, it all comes back. peer-failures row 29: exported memory
# is held.
$RUN --request 300MiB --name holds -- "$U" --do hold --bytes 200MiB --ms 30000 >"$T/hold" &
pid=$!
wait_event "$T/hold" held
check "charged" "$(use holds backing_bytes)" -ge $((200 * MIB))
kill -KILL $pid
wait $pid 2>/dev/null
check_books_empty
$RUN --request 300MiB --name shares --gpus 2 -- "$U" --do share --bytes 100MiB --devices 2 --ms 60000 --until "$T/seen" >"$T/share" &
pid=$!
wait_event "$T/share" exported
held_is() { [ "$(use shares held_bytes)" = "$1" ]; }
check "exported memory is held" "$(until_true 20 held_is $((100 * MIB)) && echo yes)" = yes
: >"$T/seen"
wait $pid
check "and it ends well" $? = 0
check_books_empty

# Above the limit it is out of memory at once; within the request it waits, but is never told so.
$RUN --request 100MiB --limit 100MiB -- "$U" --do hold --bytes 200MiB >"$T/above" 2>&1
check "above the limit" $? = 3
check_books_empty

# Whichever call of the driver fails, the program is told, ends by itself, and the books are right.
for call in cuMemCreate cuMemRelease cuMemMap cuMemUnmap cuMemSetAccess cuMemAddressReserve \
	cuMemAddressFree cuMemRetainAllocationHandle cuMemExportToShareableHandle \
	cuMemImportFromShareableHandle cuCtxEnablePeerAccess; do
	way=share
	[ "$call" = cuCtxEnablePeerAccess ] && way=peers
	for plan in "$call:1=unknown" "$call:2=out_of_memory"; do
		SLUICE_SOFTGPU_FAULTS=$plan timeout -k 2 30 $RUN --request 200MiB --gpus 2 -- "$U" --do $way --bytes 8MiB --devices 2 >"$T/fault" 2>&1
		status=$?
		[ $status -le 4 ] || fail "$plan: status $status: $(tail -n 2 "$T/fault")"
	done
done
check_books_empty
finish
