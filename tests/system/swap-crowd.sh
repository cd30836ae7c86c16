#!/bin/sh
# Two hundred clients of many workloads are moved away at once and come back at once, none loses a word, and the host's
# memory is given back afterwards.
export LIMIT=${LIMIT:-150}
export BOX="--gpus 1 --memory 8GiB --context 1MiB --module 64KiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a GPU for two hundred"
config 'host_memory: 4GiB'
daemon_start
WORKLOADS=${WORKLOADS:-20} EACH=${EACH:-10}
# A workload of several processes. They check their memory once the pipe is opened for writing.
mkfifo "$T/go"
cat >"$T/many" <<'END'
#!/bin/sh
# many SWAPPER ANSWERS COUNT PIPE
i=0
while [ $i -lt "$3" ]; do
	i=$((i + 1))
	{
		printf '%s\n' "alloc a 4m" "fill a $i" "many m 5 3000" "put m $i" rounds
		: <"$4"
		printf '%s\n' checkall exit
	} | "$1" >"$2.$i" 2>&1 &
done
wait
END
n=0
while [ $n -lt "$WORKLOADS" ]; do
	n=$((n + 1))
	$RUN --name "c$n" --request 0.04 --limit 0.5 -- sh "$T/many" "$P/swapper" "$T/c$n" "$EACH" "$T/go" >"$T/c$n.out" 2>&1 &
done
all=$((WORKLOADS * EACH))
ready() { [ "$(cat "$T"/c*.[0-9]* 2>/dev/null | grep -c '"rounds"')" -ge "$1" ]; }
until_true 60 ready $all || fail "only $(cat "$T"/c*.[0-9]* | grep -c '"rounds"') of $all are ready"
n=0
while [ $n -lt "$WORKLOADS" ]; do
	n=$((n + 1))
	"$B/sluice" park --no-wait "c$n" >/dev/null 2>&1 || fail "park c$n"
done
all_at() { [ "$("$B/sluice" ps --json | grep -c "\"residency\": *\"$1\"")" = "$WORKLOADS" ]; }
check "all are parked" "$(until_true 60 all_at parked && echo yes)" = yes
# A park is shown from the moment it is decided; a process that is not moved yet runs on. Each has a region of 4 MiB and
# two slabs of 2; its context and modules, 21 MiB at most, stay.
is_moved() { [ "$(gpu evicted_bytes)" = $((all * 8 * MIB)) ]; }
until_true 60 is_moved
check "their memory is on the host" "$(gpu evicted_bytes)" = $((all * 8 * MIB))
is_free() { [ "$(gpu free_bytes)" -ge $(((8192 - 256 - all * 21) * MIB)) ]; }
until_true 60 is_free
check "and free on the GPU" "$(gpu free_bytes)" -ge $(((8192 - 256 - all * 21) * MIB))
exec 8>"$T/go"
n=0
while [ $n -lt "$WORKLOADS" ]; do
	n=$((n + 1))
	"$B/sluice" resume --no-wait "c$n" >"$T/resume" 2>&1 || fail "resume c$n: $(cat "$T/resume")"
done
right() { [ "$(cat "$T"/c*.[0-9]* | grep -c '"checkall","result":"CUDA_SUCCESS","value":0,')" -ge "$1" ]; }
until_true 60 right $all
check "clients that found every word" "$(cat "$T"/c*.[0-9]* | grep -c '"checkall","result":"CUDA_SUCCESS","value":0,')" = $all
check_books_empty 30
check "the host's memory is given back" "$("$B/sluice" dump | json host_memory.made_bytes)" = 0
daemon_stop
finish
