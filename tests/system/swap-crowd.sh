#!/bin/sh
# Two hundred clients of many workloads are moved away at once and come back at once, none loses a word, and the host's
# memory is given back afterwards.
export LIMIT=${LIMIT:-150}
export BOX="--gpus 1 --memory 4GiB --context 1MiB --module 64KiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a GPU for two hundred"
config 'host_memory: 4GiB'
daemon_start
WORKLOADS=${WORKLOADS:-20} EACH=${EACH:-10}
# A workload of several processes, told the same by one pipe each.
cat >"$T/many" <<'END'
#!/bin/sh
i=0
while [ $i -lt "$3" ]; do
	i=$((i + 1))
	(echo "alloc a 4m"; echo "fill a $i"; echo "many m 5 3000"; echo "put m $i"; echo rounds; read -r _; echo checkall; echo exit) <"$2.go" | "$1" >"$2.$i" 2>&1 &
done
wait
END
n=0
while [ $n -lt "$WORKLOADS" ]; do
	n=$((n + 1))
	mkfifo "$T/c$n.go"
	$RUN --name "c$n" --request 0.04 --limit 0.5 -- sh "$T/many" "$P/swapper" "$T/c$n" "$EACH" </dev/null >"$T/c$n.out" 2>&1 &
done
all=$((WORKLOADS * EACH))
# A reader that never comes leaves a fifo's opener waiting: one writer for all, kept open.
n=0
while [ $n -lt "$WORKLOADS" ]; do
	n=$((n + 1))
	(
		exec >"$T/c$n.go"
		until [ -e "$T/go" ]; do sleep 0.2; done
		i=0
		while [ $i -lt "$EACH" ]; do
			i=$((i + 1))
			echo go
		done
		sleep 5
	) &
done
ready() { [ "$(cat "$T"/c*.[0-9]* 2>/dev/null | grep -c '"rounds"')" -ge "$1" ]; }
until_true 60 ready $all || fail "only $(cat "$T"/c*.[0-9]* | grep -c '"rounds"') of $all are ready"
on_gpu=$(gpu free_bytes)
n=0
while [ $n -lt "$WORKLOADS" ]; do
	n=$((n + 1))
	"$B/sluice" park --no-wait "c$n" >/dev/null 2>&1 || fail "park c$n"
done
all_at() { [ "$("$B/sluice" ps --json | grep -c "\"residency\": *\"$1\"")" = "$WORKLOADS" ]; }
check "all are parked" "$(until_true 60 all_at parked && echo yes)" = yes
check "their memory is free" "$(gpu free_bytes)" -ge $((on_gpu + all * 4 * MIB))
: >"$T/go"
n=0
while [ $n -lt "$WORKLOADS" ]; do
	n=$((n + 1))
	"$B/sluice" resume --no-wait "c$n" >/dev/null 2>&1 || fail "resume c$n"
done
right() { [ "$(cat "$T"/c*.[0-9]* | grep -c '"checkall","result":"CUDA_SUCCESS","value":0,')" -ge "$1" ]; }
until_true 60 right $all
check "clients that found every word" "$(cat "$T"/c*.[0-9]* | grep -c '"checkall","result":"CUDA_SUCCESS","value":0,')" = $all
check_books_empty 30
check "the host's memory is given back" "$("$B/sluice" dump | json host_memory.made_bytes)" = 0
daemon_stop
finish
