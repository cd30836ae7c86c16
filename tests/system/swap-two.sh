#!/bin/sh
# Workloads on two GPUs and one on one of them, which do not fit together, take turns: on each GPU they are on, all
# give way and come back, get on, and have no wrong words.
export LIMIT=120
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
		"$P/tenant" --gpus $3 --bytes 300MiB --work 60 --ms 9000 >"$T/$1" 2>"$T/$1.err" &
	eval "PID_$1=$!"
}
tenant one 0,1 2
tenant two 0,1 2
tenant solo 1 1
for name in one two solo; do
	wait "$(pid_of $name)"
	check "$name: status" $? = 0
	check "$name: wrong words" "$(json -l event=end wrong <"$T/$name")" = 0
	check "$name: out of memory" "$(json -l event=end ooms <"$T/$name")" = 0
	check "$name got on" "$(json -l event=end launches <"$T/$name")" -ge 3
	# On both GPUs, where it has both.
	for gpu in 0 1; do
		[ $name$gpu != solo0 ] || continue
		check "$name gave way on GPU $gpu" "$("$B/sluice" events --last 1000 --name $name |
			grep -c "of $name were moved from GPU $gpu to the host")" -ge 1
		check "$name was back on GPU $gpu" "$("$B/sluice" events --last 1000 --name $name | grep -c "$name has its .* back on GPU $gpu")" -ge 1
	done
done
check_books_empty
check "the daemon lived through it" "$(daemon_up && echo yes)" = yes
daemon_stop
finish
