#!/bin/sh
# A model server of tinygrad answers by HTTP: on the CPU, without Sluice, under Sluice by itself, and beside a training on a GPU
# that does not hold both. Each answer is to the last bit that without Sluice, and the CPU's within a tolerance; the
# training's losses are those it has by itself. How long answers take is printed and never judged.
# KEEP: a file to which these times are appended, a line each: what, count, p50, p99, slowest in ms.
# shellcheck disable=SC2034 # lib.sh reads PROGRAM and OPTIONS
export BOX="--gpus 1 --memory 192MiB --module 64KiB"
export LIMIT=900
. "$(dirname "$0")/../system/lib.sh"
PROGRAM=tinygrad_server
. "$(dirname "$0")/lib.sh"
export PYTHONPATH="$HERE"
QUESTIONS=${QUESTIONS:-120} MIB=96
# More than the answers take; its images are as many.
STEPS_MOST=3000

OPTIONS="--model $T/model --make $MIB"
start made $CPU_ENV
ended made $!
serves() { event "$T/server-$1" ready || gone $server; }
# serve NAME WORD...: the server of that name behind the words; $port is its own, $server its process.
serve() {
	serve_name=$1
	PROGRAM=tinygrad_server
	OPTIONS="--model $T/model"
	shift
	start "server-$serve_name" "$@"
	server=$!
	until_true 120 serves "$serve_name" || fail "no server: $(tail -n 3 "$T/server-$serve_name.err")"
	event "$T/server-$serve_name" ready || finish
	port=$(json -l event=ready port <"$T/server-$serve_name")
}
# ask NAME: the questions and the server's end; $T/NAME has the answers, and what the server read back.
ask() {
	"$PYTHON" "$HERE/ask.py" "$port" "$QUESTIONS" >"$T/$1" 2>"$T/$1.err"
	ask_status=$?
	check "$1: status of the questions" $ask_status = 0
	[ $ask_status = 0 ] || finish
	ended "server-$1" $server
	grep '"end"' "$T/server-$1" >>"$T/$1"
	check "$1: answers" "$(json -n event=step <"$T/$1")" = "$QUESTIONS"
	ask_times=$(for ask_key in p50 p99 slowest; do printf ' %.1f' "$(json -l event=times $ask_key <"$T/$1")"; done)
	note "answers, $1: p50, p99 and slowest in ms:$ask_times"
	[ -z "${KEEP-}" ] || echo "$1 $QUESTIONS$ask_times" >>"$KEEP"
}
train() {
	train_out=$1
	PROGRAM=tinygrad_convnet
	OPTIONS="--mib $MIB --steps $2"
	shift 2
	start "$train_out" "$@"
}
trained() { [ "$(json -n event=step <"$T/$1")" -ge "$2" ]; }

note "--- on the CPU, and without Sluice"
serve cpu $CPU_ENV
ask cpu
serve plain $GPU_ENV
ask plain
alike plain cpu 1e-5

config 'turn_max: 500ms'
daemon_begin
note "--- under Sluice by itself"
serve alone $GPU_ENV $RUN --name alone --request 0.3 --limit 0.8 --
ask alone
alike alone plain
note "--- beside a training, where one and a half of them fit"
export UNTIL="$T/enough"
train training $STEPS_MOST $GPU_ENV $RUN --name training --request 0.3 --limit 0.8 --
training=$!
until_true 120 trained training 3 || fail "the training does not begin: $(tail -n 3 "$T/training.err")"
before=$(json -n event=step <"$T/training")
serve beside $GPU_ENV $RUN --name server --request 0.3 --limit 0.8 --
ask beside
during=$(($(json -n event=step <"$T/training") - before))
check "the training went on meanwhile, steps" $during -ge 10
check "and had not ended" "$(gone $training || echo running)" = running
touch "$UNTIL"
ended training $training
alike beside plain
for name in server training; do
	check "$name was moved to the host and back" "$(moved $name && echo yes)" = yes
done
check_books_empty
daemon_stop
note "--- the same training by itself"
rm "$UNTIL"
train same "$(json -n event=step <"$T/training")" $GPU_ENV
ended same $!
alike training same
finish
