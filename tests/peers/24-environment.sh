#!/bin/sh
# A program that edits its environment gets no more than before; one that sheds the library is
# named.
. "$(dirname "$0")/../system/lib.sh"
config 'measure_interval: 100ms'
daemon_start
limited() { json -l when=before total_bytes <"$T/out"; }
for change in 'SLUICE_LIMIT=900MiB' 'CUDA_VISIBLE_DEVICES=0' 'SLUICE_WORKLOAD=00000000000000000000000000000000' \
	'SLUICE_REQUEST=900MiB' 'CUDA_DEVICE_MEMORY_LIMIT=900m'; do
	$RUN --request 0 --limit 200MiB -- env "$change" "$P/meminfo" --bytes 1MiB >"$T/out" 2>"$T/err"
	check "$change changes nothing" "$(limited)" = $((200 << 20))
done
$RUN --request 0 --limit 200MiB -- env -u SLUICE_WORKLOAD "$P/meminfo" --bytes 1MiB >"$T/out" 2>"$T/err"
check "without the token the ancestors tell" "$(limited)" = $((200 << 20))
$RUN --request 0 --limit 200MiB -- env -u LD_PRELOAD true >"$T/out" 2>"$T/err"
check "to shed the library is refused" $? = 64
$RUN --request 0 --limit 200MiB --force --name shed -- env -u LD_PRELOAD "$P/tenant" --bytes 64MiB --ms 60000 >"$T/shed" 2>"$T/err" &
shed=$!
named() { "$B/sluice" events --json | grep -q '"reason": "UNMANAGED_OURS"'; }
until_true 20 named
check "what sheds it by force is named" $? = 0
kill -KILL $shed
wait $shed 2>/dev/null
check_books_empty
finish
