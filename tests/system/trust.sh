#!/bin/sh
# Which daemon is believed: root's and the user's own, by the user of the listener and the owner of the folder. A stranger's neither gets a
# command line nor hands out GPUs, and a program that meets one does not hang.
export LIMIT=80
if [ "$(id -u)" != 0 ]; then
	echo "  skipped: needs other users"
	exit 77
fi
# Below a folder that others may write to, nothing from outside of a user namespace is believed.
[ -n "${SLUICE_TEST_INSIDE-}" ] || export TMPDIR=/run
. "$(dirname "$0")/lib.sh"
software_only "a daemon of another user"
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent"
# shellcheck disable=SC2086 # a list of words
$nobody test -x "$B/sluiced" || skip "$B cannot be read by others"
LIBRARY=${SLUICE_LIBRARY:-$B/libsluice.so}
S="$B/sluice"
chmod 755 "$T"
mkdir "$T/n"
chown 65534:65534 "$T/n"
# stranger_start SOCKET: sets STRANGER.
stranger_start() {
	rm -f "$T/stranger.log"
	$nobody "$B/sluiced" --socket "$1" --state "$T/n" >"$T/stranger.log" 2>&1 &
	STRANGER=$!
	until_true 10 grep -q 'ready on' "$T/stranger.log" || fail "the stranger does not listen: $(cat "$T/stranger.log")"
}
stranger_end() {
	kill -TERM "$STRANGER"
	wait "$STRANGER"
}
# status_of STATUS COMMAND...
status_of() {
	status_want=$1
	shift
	timeout 20 "$@" >"$T/said" 2>&1
	ended=$?
	check "$(echo "$*" | sed "s|$B/||g; s|$T/||g" | cut -c -90)" $ended = "$status_want"
}

# --- a stranger, from the first
stranger_start "$T/n/s"
status_of 77 env SLUICE_SOCKET="$T/n/s" "$S" ps
check_file "it is named, with the remedy" "$T/said" 'runs as user 65534, neither root nor you.*start a daemon of your own'
status_of 77 env SLUICE_SOCKET="$T/n/s" "$S" run -- touch "$T/ran"
check "nothing ran" "$([ -e "$T/ran" ] && echo ran)" = ""
# The link to root's socket is not the owner's to give.
daemon_start
ln -s "$T/s" "$T/n/link"
status_of 77 env SLUICE_SOCKET="$T/n/link" "$S" ps
check_file "the folder is named" "$T/said" 'folder of .*/n/link belongs to user 65534'
LD_PRELOAD=$LIBRARY SLUICE_SOCKET=$T/n/s SLUICE_LOG=warning timeout 20 "$P/memhog" --piece 8MiB --rounds 1 >"$T/hog" 2>"$T/hog.err"
check "a program that meets it fails, and does not hang" $? = 4
check_file "as not permitted" "$T/hog" CUDA_ERROR_NOT_PERMITTED
check_file "and says why" "$T/hog.err" 'runs as user 65534, neither root nor you'
status_of 0 $nobody env SLUICE_SOCKET="$T/n/s" "$S" ps
stranger_end

# --- root's, for others and from within user namespaces
status_of 0 $nobody "$S" ps
status_of 0 $nobody "$S" run --limit 64MiB -- true
if $nobody unshare --user --map-root-user true 2>/dev/null; then
	status_of 0 $nobody unshare --user --map-root-user "$S" run --limit 64MiB -- true
	status_of 0 $nobody unshare --user --map-root-user --pid --fork --mount-proc "$S" ps
fi

# --- a stranger in the place of a daemon that died
$RUN --name steps -- "$P/stepper" --ms 20 --steps 400 --bytes 32MiB --until "$T/end" >"$T/steps" 2>"$T/steps.err" &
STEPS=$!
until_true 20 grep -q step "$T/steps" || fail "the program does not run"
daemon_kill
chmod 1777 "$T"
rm "$T/s"
stranger_start "$T/s"
check_file "the lock of another user is ignored, and said so" "$T/stranger.log" 'ignoring .*/s.lock: it is no file of user 65534 alone'
status_of 77 "$S" ps
steps() { wc -l <"$T/steps"; }
before=$(steps)
sleep 1.5
check "the program runs on" "$(steps)" -gt "$before"
stranger_end
daemon_start
back() { [ "$(use steps clients)" = 1 ]; }
until_true 20 back || fail "the program is not back: $("$S" ps --json)"
: >"$T/end"
wait $STEPS
check "and ends well" $? = 0
check_file "with the right result" "$T/steps" '"right":true'
check_books_empty
finish
