#!/bin/sh
# Two model servers share a GPU; together they want more than it has, and both answer everything
# right. Beside them runs a program without Sluice, which is left alone.
. "$(dirname "$0")/lib.sh"
daemon_start
start() { $RUN --request 200MiB --limit 0.8 --name "$1" -- "$P/model-server" --name "$1" --weights 96MiB \
	--item 16MiB --touch 64KiB --batch-max 28 --peak-every 2 --requests 12 --hold-ms 60 --seed "$2" >"$T/$1" 2>"$T/$1.err" & }
start one 5
one=$!
start two 6
two=$!
wait $one
check "status of the first" $? = 0
wait $two
check "status of the second" $? = 0
for name in one two; do
	check "$name answered" "$(json -l event=end requests <"$T/$name")" = 12
	check "$name wrong" "$(json -l event=end wrong <"$T/$name")" = 0
done
check "worst cases exceed the GPU, MiB" \
	$((($(json -l event=end peak_bytes <"$T/one") + $(json -l event=end peak_bytes <"$T/two")) >> 20)) -gt \
	$(($(gpu shareable_bytes) >> 20))
check_books_empty

# Bypass: no environment of ours, no interposition; the daemon sees it as unmanaged.
"$P/holder" --bytes 64MiB --until "$T/seen" >"$T/bare" &
bare=$!
wait_event "$T/bare" held
see_unmanaged() { [ "$(gpu unmanaged_bytes)" -ge 67108864 ]; }
until_true 20 see_unmanaged
check "unmanaged, MiB" $(($(gpu unmanaged_bytes) >> 20)) -ge 64
: >"$T/seen"
wait $bare
finish
