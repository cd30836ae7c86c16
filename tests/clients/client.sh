#!/bin/sh
# A client by other people, or at least its library: SLUICE_CLIENT names a file of this folder. It runs on
# the software GPU alone and then as a workload, and its output must be the same, line by line; figures
# that must differ ("~ total ...") are compared with the workload's limit. cuda-bindings are run in the
# last version for CUDA 12 and in one for CUDA 13. CLIENT_RUN: further options of `sluice run`.
export BOX="--gpus 2 --memory 1GiB"
export LIMIT=280
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/../system/lib.sh"
software_only "the comparison is with the driver alone"
venv=$("$HERE/../../tools/clients-venv" 2>"$T/why") || skip "$(tail -n 1 "$T/why")"
limit=$((600 << 20))
physical=$(((1024 << 20) - (8 << 20)))
export CLIENT_IMAGE="$P/prog-kernels.so" PYTHONDONTWRITEBYTECODE=1

# client FOLDER OUT WORD...: in front of python stand the words.
client() {
	client_path=$1
	client_out=$2
	shift 2
	PYTHONPATH=$client_path "$@" "$venv/bin/python" "$HERE/$SLUICE_CLIENT.py" >"$client_out" 2>"$client_out.err"
}
# figure FILE WHAT
figure() { sed -n "s/^~ $2 //p" "$1"; }

for bindings in 13 12; do
	folder=
	[ "$bindings" = 12 ] && folder=$venv/cuda12
	client "$folder" "$T/alone$bindings"
	check "cuda-bindings $bindings alone: status" $? = 0
	cat "$T/alone$bindings.err"
done
daemon_start
for bindings in 13 12; do
	folder=
	[ "$bindings" = 12 ] && folder=$venv/cuda12
	alone=$T/alone$bindings under=$T/under$bindings
	# shellcheck disable=SC2086 # options are words
	client "$folder" "$under" $RUN ${CLIENT_RUN-} --request 200MiB --limit $limit
	check "cuda-bindings $bindings under Sluice: status" $? = 0
	check "it said nothing else" "$(wc -c <"$under.err")" = 0
	cat "$under.err"
	check "it got to its end" "$(grep -c '^end: reached' "$under")" = 1
	CHECKS=$((CHECKS + 1))
	grep -v '^~' "$alone" >"$T/left"
	grep -v '^~' "$under" >"$T/right"
	if diff "$T/left" "$T/right" >"$T/diff"; then
		note "ok: $(wc -l <"$T/left") lines, the same with and without Sluice"
	else
		fail "it sees a difference (<: alone, >: under Sluice):"
		sed 's/^/      /' "$T/diff"
	fi
	for what in "total" "device total"; do
		[ -n "$(figure "$alone" "$what")" ] || continue
		check "$what alone" "$(figure "$alone" "$what")" = $physical
		check "$what under Sluice" "$(figure "$under" "$what")" = $limit
	done
	filled=$(figure "$under" filled)
	[ -z "$filled" ] || check "nor could it have more" "$filled" -le $limit
	[ -z "$filled" ] || check "or much less" "$filled" -ge $((limit - (64 << 20)))
done
check_books_empty
finish
