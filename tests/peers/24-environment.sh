#!/bin/sh
# Who edits the environment gets no more than before; who sheds the library is named.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
limited() { json -l when=before total_bytes <"$T/out"; }
for change in 'SLUICE_LIMIT=900MiB' 'CUDA_VISIBLE_DEVICES=0' 'SLUICE_WORKLOAD=00000000000000000000000000000000' \
	'SLUICE_REQUEST=900MiB' 'CUDA_DEVICE_MEMORY_LIMIT=900m'; do
	$RUN --request 0 --limit 200MiB -- env "$change" "$P/meminfo" --bytes 1MiB >"$T/out" 2>"$T/err"
	check "$change changes nothing" "$(limited)" = $((200 << 20))
done
$RUN --request 0 --limit 200MiB -- env -u SLUICE_WORKLOAD "$P/meminfo" --bytes 1MiB >"$T/out" 2>"$T/err"
check "without the token the ancestors tell" "$(limited)" = $((200 << 20))
check_books_empty
finish
