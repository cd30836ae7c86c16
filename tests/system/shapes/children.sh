#!/bin/sh
# Processes that a workload's programs make: the same errors as without us, each user of the GPU a client of
# its own, nothing forgotten, and no line on stderr from those that cannot load us.
export LIMIT=150
. "$(dirname "$0")/../lib.sh"
S=$B/tests/system/shapes
software_only "programs of other users"
not_under_asan "$S/children"
config 'measure_interval: 100ms'
daemon_start
for case in fork-before fork-after fork-busy vfork spawn fork-exec; do
	"$S/children" $case >"$T/native" 2>&1
	check "$case without Sluice" $? = 0
	$RUN --request 200MiB -- "$S/children" $case >"$T/ours" 2>&1
	check "$case under Sluice" $? = 0
	check "$case: the same answers" "$(cmp "$T/native" "$T/ours" 2>&1 && echo same)" = same
	[ "$FAILED" = 0 ] || diff "$T/native" "$T/ours" | head -n 10
done

note "another program in the same process"
$RUN --request 200MiB --name becomes -- "$S/children" becomes >"$T/becomes" &
pid=$!
two_held() { [ "$(json -n event=held <"$T/becomes")" = 2 ]; }
until_true 20 two_held
settled() { [ "$(use becomes clients)" = 1 ] && [ $(($(use becomes backing_bytes) >> 20)) -lt 128 ]; }
until_true 5 settled
check "one client" "$(use becomes clients)" = 1
check "what it holds, MiB" $(($(use becomes backing_bytes) >> 20)) -ge 64
check "and no more, MiB" $(($(use becomes backing_bytes) >> 20)) -lt 128
check "joined twice with one pid" "$("$B/sluice" events --json | grep '"JOINED"' | grep -c "\"pid\": ${pid}[,}]")" = 2
kill -KILL $pid
wait $pid 2>/dev/null
check_books_empty

note "a daemon of its own"
$RUN --request 200MiB --name own -- sh -c "'$S/children' daemonises; sleep 60" >"$T/own" &
pid=$!
wait_event "$T/own" held
own_counts() { [ "$(use own clients)" = 1 ] && [ $(($(use own backing_bytes) >> 20)) -ge 64 ]; }
until_true 5 own_counts
check "is a client of the workload" $? = 0
# shellcheck disable=SC2046 # a list of pids is meant
kill -KILL $pid $("$B/sluice" events --json | sed -n 's/.*"pid": \([0-9]*\).*"JOINED".*/\1/p;s/.*"JOINED".*"pid": \([0-9]*\).*/\1/p' | tail -n 1)
wait $pid 2>/dev/null
check_books_empty

# quiet WHAT COMMAND...: as without us, with nothing said.
quiet() {
	what=$1
	shift
	"$@" >"$T/native" 2>&1
	native=$?
	$RUN -- sh -c '"$@"; exit $?' - "$@" >"$T/ours" 2>&1
	check "$what: status" $? = $native
	check "$what: output" "$(cat "$T/ours")" = "$(cat "$T/native")"
}
cat >"$T/exit.S" <<'INNER'
	.globl _start
_start:
	movl $1, %eax
	movl $42, %ebx
	int $0x80
	.section .note.GNU-stack, "", @progbits
INNER
echo 'int main(void) { return 43; }' >"$T/exit.c"
if cc -m32 -nostdlib -pie -Wl,-dynamic-linker,/lib/ld-linux.so.2 -o "$T/dynamic32" "$T/exit.S" 2>"$T/cc" && [ -x /lib/ld-linux.so.2 ]; then
	if [ -e "$B/by-loader/lib32/libsluice.so" ]; then
		quiet "32-bit" "$T/dynamic32"
		check "it did run" $native = 42
	else
		note "skipped: 32-bit children, no compiler made the empty library"
	fi
else
	note "skipped: 32-bit children, /lib/ld-linux.so.2 (libc6-i386) or a compiler is missing"
fi
if cc -m32 -nostdlib -static -o "$T/static32" "$T/exit.S" 2>"$T/cc"; then
	quiet "32-bit static" "$T/static32"
	check "it did run" $native = 42
else
	note "skipped: 32-bit static children, no compiler for them"
fi
if cc -static -o "$T/static64" "$T/exit.c" 2>"$T/cc"; then
	quiet "static" "$T/static64"
	check "it did run" $native = 43
else
	note "skipped: static children, no static C library"
fi
musl=/lib/ld-musl-x86_64.so.1
if [ -x "$musl" ] && cc -nostdlib -pie -Wl,-dynamic-linker,"$musl" -o "$T/musl" "$T/exit.S" 2>"$T/cc"; then
	quiet "musl" "$T/musl"
	check "it did run" $native = 42
else
	note "skipped: children of the musl loader, which is not installed"
fi

# The loader drops LD_PRELOAD for those that run with more rights than their caller.
if [ "$(id -u)" != 0 ]; then
	note "skipped: set-user-id and file capabilities need root"
	finish
fi
chmod 755 "$T"
other=$(id -u nobody)
install -o "$other" -m 4755 "$(command -v id)" "$T/id"
quiet "set-user-id" "$T/id" -u
if command -v setcap >/dev/null && cp "$(command -v id)" "$T/capable" && setcap cap_net_raw+ep "$T/capable" 2>/dev/null; then
	quiet "file capabilities" setpriv --reuid "$other" --clear-groups "$T/capable" -u
else
	note "skipped: file capabilities, which the file system or setcap lacks"
fi
# shellcheck disable=SC2016 # for the shell inside
# One that uses the GPU all the same is named. Set-group-id, so that it may still enter the box.
install -g "$(id -g nobody)" -m 2755 "$S/raised" "$T/raised"
$RUN --request 0 --limit 200MiB --name raised -- sh -c '"$1" holds & echo $! >"$2"; wait' - "$T/raised" "$T/raised.pid" >"$T/held" 2>"$T/held.err" &
run=$!
wait_event "$T/held" held
pid=$(cat "$T/raised.pid")
seen_ours() { "$B/sluice" events --json | grep UNMANAGED_OURS | grep -q "\"pid\": ${pid}[,}]"; }
until_true 8 seen_ours
check "set-group-id on the GPU: the daemon names it" $? = 0
check "in silence" "$(cat "$T/held.err")" = ""
kill -KILL "$pid" $run
wait $run 2>/dev/null
finish
