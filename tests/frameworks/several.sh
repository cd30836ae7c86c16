#!/bin/sh
# tinygrad trains a transformer on one GPU, and the conv-net and the transformer on two and four, each step a graph with copies
# between GPUs; then a training on one GPU gives way to one on two that does not fit beside it, and comes back.
export BOX="--gpus 4 --memory 192MiB --module 64KiB"
export LIMIT=900
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/lib.sh"
half() { event "$T/$1" half; }
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
MIB=96
for what in 'narrow 1' 'wide 2'; do
	# shellcheck disable=SC2086 # words
	set -- $what
	train "plain-$1" convnet "$2" $GPU_ENV
	ended "plain-$1" $!
done
MIB=8

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

note "--- one on the first GPU gives way to one on two, whose memory both GPUs reach: that is held, and never moved"
export HOLD="$T/go"
MIB=96
train narrow convnet 1 $GPU_ENV CUDA_VISIBLE_DEVICES=0 $RUN --name narrow --gpus 1 --request 0.2 --limit 0.8 --
narrow=$!
until_true 400 half narrow || fail "narrow does not get half-way: $(tail -n 3 "$T/narrow.err")"
train wide convnet 2 $GPU_ENV CUDA_VISIBLE_DEVICES=0,1 $RUN --name wide --gpus 2 --request 0.7 --limit 0.8 --
wide=$!
until_true 400 half wide || fail "wide does not get half-way: $(tail -n 3 "$T/wide.err")"
check "narrow is on the host meanwhile" "$(use narrow evicted_bytes)" -gt 0
touch "$T/go"
ended wide $wide
alike wide plain-wide
ended narrow $narrow
alike narrow plain-narrow
check "narrow was moved to the host and back" "$(moved narrow && echo yes)" = yes
check "wide was never moved" "$("$B/sluice" events --last 1000 --name wide | grep -c 'of wide were moved')" = 0
check_books_empty
daemon_stop
finish
