#!/bin/sh
# Whichever call of the driver fails, the program gets that error or success, ends by itself, and the
# books are right afterwards. The plan makes each call of every-call fail in turn, the first and the
# second time; internal calls of Sluice are among them.
export LIMIT=200
. "$(dirname "$0")/lib.sh"
software_only "a fault plan"
daemon_start
$RUN -- "$P/every-call" >"$T/clean"
check "without faults all is well" $? = 0
check "and nothing failed" "$(json -l event=end errors <"$T/clean")" = 0
calls=$("$P/every-call" --list)
tried=0
seen=0
for call in $calls; do
	for plan in "$call:1=unknown" "$call:2=out_of_memory"; do
		tried=$((tried + 1))
		SLUICE_SOFTGPU_FAULTS=$plan timeout -k 2 30 $RUN --request 100MiB -- "$P/every-call" >"$T/out" 2>"$T/err"
		status=$?
		[ $status = 0 ] || fail "$plan: status $status: $(tail -n 2 "$T/out")"
		event "$T/out" end || fail "$plan: it did not end by itself"
		[ "$(json -l event=end errors <"$T/out")" = 0 ] || seen=$((seen + 1))
	done
done
check "plans tried" $tried -ge 60
# Some calls are made once only, and Sluice retries or answers some by itself.
check "plans whose error the program saw" $seen -ge 20
check_books_empty
check "the daemon lived through it" "$(daemon_up && echo yes)" = yes
# Memory that counts as free and cannot be had: the grant fails in the driver and waits, unseen.
SLUICE_SOFTGPU_FAULTS="cuMemCreate:2=oom,cuMemCreate:3=oom" $RUN --request 200MiB -- "$P/holder" --bytes 150MiB --ms 0 --verify >"$T/again"
check "a creation that fails twice is not seen" $? = 0
# A call that hangs: the process can still be killed, and its bytes come back.
SLUICE_SOFTGPU_FAULTS="cuMemcpyHtoD_v2:1=hang" $RUN -- "$P/every-call" >"$T/hang" 2>/dev/null &
pid=$!
sleep 1
kill -KILL $pid
wait $pid 2>/dev/null
check_books_empty
finish
