#!/bin/sh
# Two notebooks on a GPU that holds one and a half: Python's own prompt, to which cells are sent at intervals, in turn. What a cell left
# on the GPU is there for the next one, though the other notebook had the GPU in between.
export BOX="--gpus 1 --memory 192MiB --module 64KiB"
export LIMIT=600
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/lib.sh"
export PYTHONPATH="$HERE"
CELLS=4
# cell NUMBER: its text; an empty line ends what is still open.
cell() { awk -v wanted="$1" '/^# %%/ { n++ } n == wanted' "$HERE/notebook_cells.py" && echo; }
said() { [ "$(grep -c '^{' "$T/$1")" -ge "$2" ]; }
for number in 1 2 3 4; do cell $number; done >"$T/all"
$GPU_ENV "$PYTHON" -q -i <"$T/all" >"$T/plain" 2>"$T/plain.err"
check "without Sluice: cells with a result" "$(grep -c '^{' "$T/plain")" = $CELLS

config 'idle_grace: 100ms'
daemon_begin
for name in one two; do
	mkfifo "$T/$name.in"
	$GPU_ENV $RUN --name $name --request 0.5 --limit 0.8 -- "$PYTHON" -q -i <"$T/$name.in" >"$T/$name" 2>"$T/$name.err" &
	eval "$name=\$!"
done
exec 5>"$T/one.in" 6>"$T/two.in"
for number in $(seq $CELLS); do
	for to in 'one 5' 'two 6'; do
		# shellcheck disable=SC2086 # words
		set -- $to
		cell "$number" >&"$2"
		until_true 120 said "$1" "$number" || fail "cell $number of $1 has no result: $(tail -n 5 "$T/$1.err"; "$B/sluice" why "$1")"
	done
done
exec 5>&- 6>&-
for name in one two; do
	eval "ended $name \$$name"
	alike $name plain
	check "$name was moved to the host and back" "$(moved $name && echo yes)" = yes
done
check_books_empty
daemon_stop
finish
