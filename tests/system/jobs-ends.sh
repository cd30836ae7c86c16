#!/bin/sh
# Jobs with real processes: `wait` leaves with a job's end, `logs` prints its output, and no process that it started is
# left; whether the daemon saw the end, or was killed before, or is killed at any time.
BOX='--gpus 2 --memory 1GiB'
LIMIT=110
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
software_only "each job gets a GPU"
config "data_dir: $T/data"
config 'stop_grace: 1s'
daemon_start

# submit NAME OPTIONS... -- CMD...: must be taken.
submit() {
	submit_name=$1
	shift
	"$B/sluice" submit --name "$submit_name" "$@" >"$T/said" 2>&1 || fail "submit $submit_name: $(cat "$T/said")"
}
# ended NAME STATUS: what wait leaves with.
ended() {
	"$B/sluice" wait --timeout 30s "$1" >"$T/said" 2>&1
	check "$1 ended with" $? = "$2"
}
job() { "$B/sluice" ps --all --json | json "name=$1.$2"; }
is() { [ "$(job "$1" state)" = "$2" ]; }
logs() { "$B/sluice" logs "$@" 2>/dev/null; }
wrote() { logs "$1" | grep -q -- "$2"; }
# pid NAME: the first number of its log.
pid() { logs "$1" | grep -m1 -E '^[0-9]+$'; }
# waits PID: it is sluice, and knows its job: from then on it is ready to be interrupted.
waits() { grep -q '^Name:.*sluice' "/proc/$1/status" && grep -q '^SigCgt:.*[1-9a-f]' "/proc/$1/status"; }
small='--request 64MiB'

# --- Ends.
# shellcheck disable=SC2086 # words
{
	submit good $small -- sh -c 'echo out; echo err >&2; cat; exit 0'
	submit seven $small -- sh -c 'exit 7'
	submit killed $small -- sh -c 'kill -9 $$'
	submit here $small --env A=b --dir / -- sh -c 'pwd; echo "$A $SLUICE_TASK/$SLUICE_TASKS"; umask'
	submit gang $small --gang 3 -- sh -c "echo \"task \$SLUICE_TASK\"; : >$T/gang.\$SLUICE_TASK; until [ -e $T/gang.0 ] && [ -e $T/gang.1 ] && [ -e $T/gang.2 ]; do sleep 0.05; done; exit \$((SLUICE_TASK * 3))"
	submit again $small --retries 1 -- sh -c "echo try; [ -e $T/tried ] || { : >$T/tried; exit 3; }"
	submit memory --request 256MiB -- "$P/holder" --bytes 200Mi
}
ended good 0
check 'what it wrote' "$(logs good)" = 'out
err'
ended seven 7
ended killed 137
ended here 0
check 'folder, variables, umask' "$(logs here)" = "/
b 0/1
$(umask)"
"$B/sluice" wait --timeout 30s gang >"$T/said" 2>&1
status=$?
check 'a gang fails with one of its tasks' "$status" -gt 0
check 'a task of several' "$(logs gang --task 1)" = 'task 1'
ended again 0
check 'both attempts in one log' "$(logs again | grep -c try)" = 2
until_true 10 wrote memory held || fail "no memory: $(logs memory)"
check 'its memory is counted' "$(use memory backing_bytes)" -ge $((200 * 1048576))

# --- Stopped.
"$B/sluice" stop memory >"$T/said" 2>&1
ended memory 143
# shellcheck disable=SC2086
submit deaf $small -- sh -c "trap '' TERM; setsid sh -c 'echo \$\$; while :; do sleep 0.1; done' & while :; do sleep 0.1; done"
until_true 10 wrote deaf '[0-9]' || fail 'deaf does not run'
deaf=$(pid deaf)
"$B/sluice" stop deaf --grace 1s >"$T/said" 2>&1
ended deaf 137
check 'and what it started in a session of its own' "$(gone "$deaf" && echo yes)" = yes
# shellcheck disable=SC2086
submit leaves $small -- sh -c 'setsid sh -c "trap \"\" TERM HUP; echo \$\$; while :; do sleep 0.1; done" & while ! [ -s /proc/self/fd/1 ]; do sleep 0.05; done; exit 4'
ended leaves 4
check 'what it left behind is gone' "$(gone "$(pid leaves)" && echo yes)" = yes
submit first -- sleep 1000
submit second -- sleep 1000
submit queued -- true
check 'a queued one is stopped' "$("$B/sluice" stop queued >/dev/null 2>&1 && is queued stopped && echo yes)" = yes
"$B/sluice" stop second >/dev/null 2>&1

# --- The daemon is killed and started again.
rounds=3
while [ $rounds -gt 0 ]; do
	# shellcheck disable=SC2086
	submit "over$rounds" $small -- sh -c "echo begun; while ! [ -e $T/go$rounds ]; do sleep 0.05; done; echo done; exit $((10 + rounds))"
	until_true 10 wrote "over$rounds" begun || fail "over$rounds does not begin"
	"$B/sluice" wait "over$rounds" >"$T/waited$rounds" 2>&1 &
	waiter=$!
	until_true 10 waits $waiter || fail 'nobody waits'
	case $rounds in
	3) # Ends while there is a daemon again.
		daemon_kill
		daemon_start
		: >"$T/go3"
		;;
	2) # Ends while there is none.
		daemon_kill
		: >"$T/go2"
		sleep 0.5
		daemon_start
		;;
	1) # As an update does it.
		daemon_stop
		: >"$T/go1"
		daemon_start
		;;
	esac
	wait $waiter
	waited=$?
	check "round $rounds: who waited meanwhile has the status ($(cat "$T/waited$rounds"))" $waited = $((10 + rounds))
	ended "over$rounds" $((10 + rounds))
	check "round $rounds: all that it wrote" "$(logs "over$rounds")" = 'begun
done'
	check 'the other one runs on' "$(job first state)" = running
	rounds=$((rounds - 1))
done
ended seven 7

# The supervisor is killed: its program goes with it, and all that the program has started, wherever; its own end is unknown.
# shellcheck disable=SC2086,SC2016
submit lost $small -- sh -c 'setsid sh -c "trap \"\" TERM HUP; echo \$\$ >$0; while :; do sleep 0.1; done" & echo $$; exec sleep 1000' "$T/straggler"
until_true 10 wrote lost '[0-9]' || fail 'lost does not run'
until_true 10 test -s "$T/straggler" || fail 'it starts nothing'
program=$(pid lost)
kill -KILL "$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$program/status")"
ended lost 1
check 'its program goes, too' "$(until_true 10 gone "$program" && echo yes)" = yes
check 'and what that had started' "$(until_true 10 gone "$(cat "$T/straggler")" && echo yes)" = yes
# The same while there is no daemon: what has memory is known to the next one.
# shellcheck disable=SC2086,SC2016
submit orphaned $small -- sh -c 'setsid "$0" --bytes 16Mi & sleep 1000' "$P/holder"
until_true 10 wrote orphaned held || fail "orphaned has no memory: $(logs orphaned)"
supervisor=$("$B/sluice" ps --json | json name=orphaned.pid)
daemon_kill
kill -KILL "$supervisor"
daemon_start
ended orphaned 1
"$B/sluice" stop first >/dev/null 2>&1
ended first 143

# --- Nothing is left.
check 'no child of the daemon is left' "$(ps -o pid= --ppid "$DAEMON" | wc -l)" = 0
check_books_empty
check 'as many jobs as were submitted' "$("$B/sluice" ps --all --json | json '#')" = "$(find "$T/data/jobs" -mindepth 1 -maxdepth 1 -type d | wc -l)"
# A damaged one costs itself only.
broken=$(job good job)
daemon_stop
sql() { "$B/tests/system/history-file" "$T/data/state.db" run "$1"; }
sql "UPDATE job SET text = '{}' WHERE number = $broken"
daemon_start
check 'a damaged job is named' "$(grep -c "job $broken in .* is damaged: its checksum is wrong" "$T/daemon.log")" = 1
ended seven 7
# shellcheck disable=SC2086
submit after $small -- true
ended after 0
check 'its number is not given again' "$(job after job)" -gt "$broken"
# --- What cannot be written down does not go: the next daemon would start it beside itself.
submit before --gpus 2 -- sh -c "while [ ! -e $T/on ]; do sleep 0.05; done"
until_true 10 is before running || fail "before does not run"
submit unwritten --gpus 2 -- sh -c 'echo begun'
sql "CREATE TRIGGER jam BEFORE INSERT ON job WHEN new.number = $(job unwritten job) BEGIN SELECT RAISE(ABORT, 'jammed'); END"
touch "$T/on"
ended before 0
said_so() { grep -q "cannot store the jobs in .*: jammed" "$T/daemon.log"; }
until_true 10 said_so || fail "nobody says that it cannot be written"
check 'it has not gone' "$(logs unwritten | grep -c begun)" = 0
sql "DROP TRIGGER jam"
ended unwritten 0
check 'it went once' "$(logs unwritten | grep -c begun)" = 1
finish
