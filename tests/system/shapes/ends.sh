#!/bin/sh
# Programs that unload the driver, close our descriptors, change root, user, limits or environment, and end in
# the midst of it: as without us each time, and the books are empty after each.
export LIMIT=150
. "$(dirname "$0")/../lib.sh"
S=$B/tests/system/shapes
software_only "a driver that can be unloaded"
daemon_start
mkdir "$T/root"
# both CASE [FILE]: natively and under Sluice.
both() {
	timeout -k 2 20 "$S/ends" "$@" >"$T/native" 2>&1
	check "$1 without Sluice" $? = 0
	# shellcheck disable=SC2086 # RUN is words
	timeout -k 2 20 $RUN --request 300MiB -- "$S/ends" "$@" >"$T/ours" 2>"$T/err"
	check "$1 under Sluice" $? = 0
	check "$1: silence" "$(cat "$T/err")" = ""
	[ "$FAILED" = 0 ] || cat "$T/err" "$T/native" "$T/ours"
	check_books_empty
}
both reopened
both plugin-closed "$S/plugin-linked.so"
both plugin-closed "$S/plugin-asks.so"
both closes-all
both covers-all "$T/over"
check "nothing was written" "$(wc -c <"$T/over")" = 0
both forgets-environment
both few-descriptors
both little-room
# Too few descriptors for us from the start: an error, as from the driver, or all is well; never a wait.
for few in 5 6 7 8; do
	timeout -k 2 20 prlimit --nofile=$few "$S/ends" few-at-start 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- >"$T/native" 2>&1
	native=$?
	# shellcheck disable=SC2086 # RUN is words
	timeout -k 2 20 $RUN --request 300MiB -- prlimit --nofile=$few "$S/ends" few-at-start 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- >"$T/ours" 2>&1
	ours=$?
	check "$few descriptors: it ends as without us, or with an error" "$(if [ $ours = $native ] || { [ $ours = 1 ] && grep -q error "$T/ours"; }; then echo so; else echo "$native $ours"; fi)" = so
done
for _ in 1 2 3; do
	both ends-amidst
done
both frees-at-exit
check "the late free is answered as without us" "$(cat "$T/ours")" = "$(cat "$T/native")"
check "it was freed late" "$(grep -c late "$T/ours")" = 1
if [ "$(id -u)" = 0 ]; then
	both changes-root "$T/root"
	both changes-user
else
	note "skipped: another root and another user need root"
fi
finish
