#!/bin/sh
# Workloads on two GPUs and one on one of them, which do not fit together, take turns: on each GPU they are on, all
# give way and come back, get on, and have no wrong words.
export LIMIT=180
export BOX="--gpus 2 --memory 512MiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
config 'host_memory: 4GiB'
config 'turn_max: 500ms'
daemon_start
# tenant NAME GPUS: 300 of some 470 MiB on each, more than half of the time at work.
tenant() {
	# shellcheck disable=SC2086 # words
	CUDA_VISIBLE_DEVICES=$2 $RUN --gpus $3 --request 0.2 --limit 1.0 --name "$1" -- \
		"$P/tenant" --gpus $3 --bytes 300MiB --work 60 --tell 3 --term finish --ms 150000 >"$T/$1" 2>"$T/$1.err" &
	eval "PID_$1=$!"
}
tenant one 0,1 2
tenant two 0,1 2
tenant solo 1 1
# gave_way NAME GPU, was_back NAME GPU
gave_way() { "$B/sluice" events --last 1000 --name $1 | grep -q "of $1 were moved from GPU $2 to the host"; }
was_back() { "$B/sluice" events --last 1000 --name $1 | grep -q "$1 has its .* back on GPU $2"; }
for where in 'one 0' 'one 1' 'two 0' 'two 1' 'solo 1'; do
	# shellcheck disable=SC2086 # words
	check "gave way and was back, on GPU: $where" "$(until_true 40 gave_way $where && until_true 40 was_back $where && echo yes)" = yes
done
got_on() { grep -q '"launched"' "$T/$1"; }
for name in one two solo; do
	check "$name got on" "$(until_true 40 got_on $name && echo yes)" = yes
done
for name in one two solo; do
	kill -TERM "$(pid_of $name)"
	wait "$(pid_of $name)"
	check "$name: status" $? = 0
	check "$name: wrong words" "$(json -l event=end wrong <"$T/$name")" = 0
	check "$name: out of memory" "$(json -l event=end ooms <"$T/$name")" = 0
done
check_books_empty
check "the daemon lived through it" "$(daemon_up && echo yes)" = yes
daemon_stop
finish
