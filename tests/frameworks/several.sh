#!/bin/sh
# tinygrad trains a transformer on one GPU, and the conv-net and the transformer on two and four, each step a graph with copies
# between GPUs; then two trainings on two GPUs each, which do not fit together and take turns on both.
export BOX="--gpus 4 --memory 192MiB --module 64KiB"
export LIMIT=900
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/lib.sh"
# train OUT PROGRAM GPUS WORD...
train() {
	# shellcheck disable=SC2034 # for lib.sh
	PROGRAM=tinygrad_$2
	# shellcheck disable=SC2034 # for lib.sh
	OPTIONS="--mib ${MIB:-8} --steps 12 --gpus $3"
	train_out=$1
	shift 3
	start "$train_out" "$@"
}
note "--- on the CPU, and without Sluice on 1, 2 and 4 GPUs"
train cpu-convnet convnet 1 $CPU_ENV
convnet=$!
train cpu-transformer transformer 1 $CPU_ENV
ended cpu-convnet $convnet
ended cpu-transformer $!
for what in 'transformer 1' 'convnet 2' 'transformer 2' 'convnet 4'; do
	# shellcheck disable=SC2086 # words
	set -- $what
	train "plain-$1-$2" "$1" "$2" $GPU_ENV
	eval "plain_$1_$2=\$!"
done
for what in 'transformer 1' 'convnet 2' 'transformer 2' 'convnet 4'; do
	# shellcheck disable=SC2086 # words
	set -- $what
	eval "ended plain-$1-$2 \$plain_$1_$2"
	alike "plain-$1-$2" "cpu-$1" 1e-3
done

config 'turn_max: 500ms'
daemon_begin
note "--- alone, with request and limit"
for what in 'transformer 1' 'convnet 2' 'transformer 2' 'convnet 4'; do
	# shellcheck disable=SC2086 # words
	set -- $what
	train "under-$1-$2" "$1" "$2" $GPU_ENV $RUN --gpus "$2" --request 0.3 --limit 0.6 --
	ended "under-$1-$2" $!
	alike "under-$1-$2" "plain-$1-$2"
done

note "--- two on the same two GPUs, where one and a half fit on the first"
export HOLD="$T/go"
MIB=96
for name in one two; do
	CUDA_VISIBLE_DEVICES=0,1 train $name convnet 2 $GPU_ENV $RUN --name $name --gpus 2 --request 0.2 --limit 0.8 --
	eval "$name=\$!"
done
for name in one two; do
	until_true 400 event "$T/$name" half || fail "$name does not get half-way: $(tail -n 3 "$T/$name.err")"
done
touch "$T/go"
swapped=0
for name in one two; do
	eval "ended $name \$$name"
	moved $name && swapped=$((swapped + 1))
done
alike one two
check "moved to the host and back" $swapped -ge 1
check_books_empty
daemon_stop
finish
