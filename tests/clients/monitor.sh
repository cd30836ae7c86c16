#!/bin/sh
# A monitor by other people watches a GPU: SLUICE_CLIENT names a file of this folder. Alone it sees the
# machine; in a workload it sees the workload's share, although a neighbour uses the same GPU (peer-failures
# rows 12, 18, 19). Output that has nothing to do with shares is the same, line by line.
export BOX="--gpus 3 --memory 1GiB"
export LIMIT=200
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/../system/lib.sh"
software_only "three GPUs of known size"
venv=$("$HERE/../../tools/clients-venv" 2>"$T/why") || skip "$(tail -n 1 "$T/why")"
export PYTHONDONTWRITEBYTECODE=1
limit=$((400 << 20))
figure() { sed -n "s/^~ $2 //p" "$T/$1"; }
# shellcheck disable=SC2016 # the inner shell expands it
inside='"$0" --bytes 100MiB --ms 60000 >"$1.held" & echo $! >"$1.holder"
	while ! grep -qs held "$1.held"; do sleep 0.05; done
	sleep 1.2
	"$2" "$3" >"$1" 2>"$1.err"; echo $? >"$1.status"
	kill $(cat "$1.holder")'
# watch OUT WORD...
watch() {
	watch_out=$1
	shift
	"$@" sh -c "$inside" "$P/holder" "$T/$watch_out" "$venv/bin/python" "$HERE/$SLUICE_CLIENT.py"
	check "$watch_out: status" "$(cat "$T/$watch_out.status")" = 0
	check "$watch_out: it complains of nothing" "$(wc -c <"$T/$watch_out.err")" = 0
	cat "$T/$watch_out.err"
	check "$watch_out: it got to its end" "$(grep -c '^end: reached' "$T/$watch_out")" = 1
}

watch alone env
check "alone: GPUs" "$(figure alone count)" = 3
daemon_start
$RUN --name neighbour --request 200MiB --limit 400MiB -- "$P/holder" --bytes 200MiB --ms 60000 >"$T/neighbour" &
neighbour=$!
wait_event "$T/neighbour" held
CUDA_VISIBLE_DEVICES=0 watch under $RUN --request 100MiB --limit $limit
check "under Sluice: GPUs" "$(figure under count)" = 1
kill -KILL $neighbour
CHECKS=$((CHECKS + 1))
grep -v '^~' "$T/alone" >"$T/left"
grep -v '^~' "$T/under" >"$T/right"
if [ "$SLUICE_CLIENT" = nvml_numbers ]; then
	check "under Sluice: nothing is wrong" "$(grep -c False "$T/right")" = 0
	CUDA_VISIBLE_DEVICES=1 watch second $RUN --request 100MiB --limit $limit
	check "on the second GPU: nothing is wrong" "$(grep -c False "$T/second")" = 0
	CUDA_VISIBLE_DEVICES=1,2 watch two $RUN --gpus 2 --request 100MiB --limit $limit
	check "on two GPUs: nothing is wrong" "$(grep -c False "$T/two")" = 0
	check "on two GPUs: both" "$(grep -c '^CUDA.s . is NVML.s .: True' "$T/two")" = 2
	check_books_empty
	finish
fi
if diff "$T/left" "$T/right" >"$T/diff"; then
	note "ok: $(wc -l <"$T/left") lines, the same with and without Sluice"
else
	fail "it sees a difference (<: alone, >: under Sluice):"
	sed 's/^/      /' "$T/diff"
fi
# Of both: only the holder, with its memory and its context.
for run in alone under; do
	check "$run: one process" "$(figure $run pids)" = "$(cat "$T/$run.holder")"
	check "$run: with its memory" "$(figure $run held)" -ge $((100 << 20))
	check "$run: used is at least that" "$(figure $run used)" -ge "$(figure $run held)"
	for what in "screen pids" sampled; do
		[ -z "$(figure $run "$what")" ] || check "$run: $what" "$(figure $run "$what")" = "$(cat "$T/$run.holder")"
	done
done
check "alone: total is the card's" "$(figure alone total)" = $((1024 << 20))
check "under Sluice: total is the limit" "$(figure under total)" = $limit
check "under Sluice: used is its own" "$(figure under used)" = "$(figure under held)"
if [ -n "$(figure under "screen total")" ]; then
	check "its screen: total" "$(figure under "screen total" | cut -d. -f1)" = $((limit >> 20))
	check "its screen: used" "$(figure under "screen used" | cut -d. -f1)" = $(($(figure under used) >> 20))
fi
check_books_empty
finish
