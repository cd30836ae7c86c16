#!/bin/sh
# Jobs from the command line, with real processes: what was submitted runs with its words, environment and folder, what waits says
# why, output and exit statuses are kept, also over a daemon that is killed in between.
export BOX='--gpus 2 --memory 512MiB'
export LIMIT=110
. "$(dirname "$0")/lib.sh"
software_only "two GPUs"
S="$B/sluice"
config 'job_log_max: 1MiB'
daemon_start

submit() { "$S" submit "$@" >"$T/said" 2>&1; }
job() { "$S" ps --all --json | json "name=$1.$2"; }
is() { [ "$(job "$1" state)" = "$2" ]; }
# waits PID: it is sluice, and ready to be interrupted.
waits() { grep -q '^Name:.*sluice' "/proc/$1/status" && grep -q '^SigCgt:.*[1-9a-f]' "/proc/$1/status"; }
# status_of WANTED COMMAND...: its exit status; what it said is in $T/said.
status_of() {
	status_want=$1
	shift
	timeout 40 "$@" >"$T/said" 2>&1
	ended=$?
	check "$(echo "$*" | sed "s|$S|sluice|" | cut -c -70)" $ended = "$status_want"
}

# --- one that computes
status_of 0 "$S" submit --name one -- "$P/stepper" --steps 8 --ms 50 --bytes 32Mi
check_file 'its number, and that it starts' "$T/said" '^one: queued as job [0-9]+; it starts at once$'
timeout 40 "$S" logs -f one >"$T/log" 2>"$T/err"
check 'logs -f ends' $? = 0
check 'logs -f: all of it, to the end' "$(json -l event=end right <"$T/log")" = 1
check 'logs -f: all of it, from the start' "$(json -n event=step <"$T/log")" = 8
status_of 0 "$S" wait one
check_file 'wait says so' "$T/said" '^one is done$'
"$S" logs one >"$T/again"
check 'logs again' "$(cmp "$T/log" "$T/again" && echo same)" = same
check 'logs --last 2' "$("$S" logs one --last 2 | wc -l)" = 2

# --- what writes much keeps the end of it
# shellcheck disable=SC2016
status_of 0 "$S" submit --name loud -- sh -c 'i=0; while [ $i -lt 100000 ]; do echo "line $i of many"; i=$((i + 1)); done; sleep 2; echo last'
timeout 40 "$S" logs -f loud >"$T/log" 2>"$T/err"
check 'logs -f of much: its end' "$(tail -n 1 "$T/log")" = last
check 'each line that it says is whole' "$(grep -cavE '^(line [0-9]+ of many|last|sluice: the oldest [0-9.]+ [KMG]iB of this output are dropped; 1 MiB are kept .*)$' "$T/log")" = 0
"$S" logs loud >"$T/log"
check_file 'logs says what is gone' "$T/log" '^sluice: the oldest .* of this output are dropped; 1 MiB are kept \(job_log_max in sluiced.conf\)$'
check 'in front' "$(sed -n '1s/:.*//p' "$T/log")" = sluice
check 'logs --last' "$("$S" logs loud --last 2 | tr '\n' ';')" = 'line 99999 of many;last;'
check 'logs --last of more than there is' "$("$S" logs loud --last 90000 | sed -n '1s/:.*//p')" = sluice
check 'it is within its bound' "$(du -k "$T/state/jobs/$(job loud job)/log.0" | cut -f 1)" -le 1100

# --- memory for other devices, and refused users
status_of 0 "$S" submit --rdma --name devices -- true
status_of 0 "$S" wait devices
# Root in a container is not the machine's.
if unshare --mount --pid --fork --mount-proc true 2>/dev/null; then
	status_of 75 unshare --mount --pid --fork --mount-proc "$S" submit --name inside -- true
	check_file 'a container is told where to go' "$T/said" 'is in a container, and jobs run outside of it'
fi

# Nor does a job see a network that its submitter does not.
if [ "$(id -u)" = 0 ] && unshare --net true 2>/dev/null; then
	status_of 75 unshare --net "$S" submit --name offline -- true
	check_file 'another network is told' "$T/said" 'is in another network or IPC namespace than sluiced, and jobs run outside of it'
fi

# --- what it gets, and what it left
mkdir "$T/folder"
umask 027
status_of 0 env T_KEPT=kept LD_PRELOAD= "$S" submit --name shell --dir "$T/folder" --env 'T_SET=a b' -- sh -c \
	'pwd; echo "$T_KEPT,$T_SET,$SLUICE_TASK/$SLUICE_TASKS,$CUDA_VISIBLE_DEVICES,$1"; umask; cat; echo "$LD_PRELOAD" | grep -o libsluice.so | wc -l; echo bad >&2; exit 7' x 'c d'
status_of 7 "$S" wait shell
check_file 'wait says so' "$T/said" '^shell failed: it ended with exit status 7$'
check 'folder, words, environment, umask, standard error' "$("$S" logs shell | tr '\n' ';')" = \
	"$T/folder;kept,a b,0/1,$("$S" logs shell | sed -n 's/.*1,\([01]\),c d/\1/p'),c d;0027;1;bad;"
check 'ps --all: exit status' "$(job shell exit_status)" = 7
status_of 137 "$S" submit --wait --name killed -- sh -c 'kill -9 $$'
check_file 'submit --wait says how it ended' "$T/said" '^killed failed: it was killed by signal 9'
status_of 0 "$S" submit --wait --name again --retries 2 -- sh -c 'echo "attempt $SLUICE_ATTEMPT"; [ "$SLUICE_ATTEMPT" = 2 ]'
check 'all attempts are in the log' "$("$S" logs again | tr '\n' ' ')" = 'attempt 1 attempt 2 '
status_of 0 "$S" submit --wait --name gang --gang 2 -- sh -c 'echo "task $SLUICE_TASK"'
check 'logs --task' "$("$S" logs gang --task 1)" = 'task 1'
submit --name half --gang 2 -- sh -c '[ "$SLUICE_TASK" = 0 ] || exit 5; sleep 60' || fail "half: $(cat "$T/said")"
status_of 5 "$S" wait half
"$S" events >"$T/events"
check_file 'who is stopped because another task failed' "$T/events" ' half\.0 was stopped because its job is over: another task of the job failed, or the job was stopped$'
submit --name part --gang 3 --min 2 -- sleep 60 || fail "part: $(cat "$T/said")"
until_true 20 is part running || fail "part does not run"
for who in part part.2; do
	"$S" why "$who" >"$T/why"
	check_file "why $who: what waits of a job that runs" "$T/why" '^part: job [0-9]+ is running with 2 of its 3 tasks, .*; of the rest: .*; it runs when '
done
status_of 0 "$S" stop part
status_of 143 "$S" wait part

# --- a queue
for i in 1 2 3; do
	submit --name "long-$i" -- sh -c 'sleep 60 & echo $! >"$0"; wait' "$T/sleep-$i" || fail "long-$i: $(cat "$T/said")"
done
check_file 'the third is told that it waits' "$T/said" '^long-3: queued as job [0-9]+; it waits: .*GPU'
until_true 20 is long-2 running || fail "long-2 does not run"
check 'the third waits' "$(job long-3 state)" = queued
"$S" ps >"$T/ps"
check_file 'ps has a line for it' "$T/ps" ' long-3 .* queued .* it wants'
check 'and one for each that runs' "$(grep -c ' long-[12] ' "$T/ps")" = 2
"$S" why long-3 >"$T/why"
check_file 'why says what would let it run' "$T/why" '^long-3: job [0-9]+ is queued, submitted .* ago; .*; it runs when '
status_of 0 "$S" submit --try --name nothing -- true
check_file '--try says that it would wait' "$T/said" '^it waits: '
check '--try queues nothing' "$("$S" ps --all --json | grep -c '"name": "nothing"')" = 0
status_of 75 "$S" submit --name long-3 -- true
check_file 'a name that is taken' "$T/said" "long-3 is there already"
status_of 75 "$S" submit --gpus 3 -- true
check_file 'what never fits is refused' "$T/said" '^sluice submit: refused: '
status_of 75 "$S" submit --gang 3 -- true
check_file 'so is a gang that is too large' "$T/said" '^sluice submit: refused: 3 .* must run together, and there would be room for 2 '
status_of 75 "$S" submit --try --gang 3 -- true
status_of 124 "$S" wait --timeout 100ms long-3
"$S" submit --wait --name held -- true >"$T/held" 2>&1 &
HELD=$!
until_true 20 is held queued || fail "held is not queued"
until_true 20 waits $HELD || fail "nobody waits"
kill -INT $HELD 2>/dev/null
kill -TERM $HELD
wait $HELD
check 'an interrupted --wait leaves it' "$(job held state)" = queued
check_file 'and says how to stop it' "$T/held" 'To stop it: sluice stop held'
status_of 0 "$S" stop held
status_of 0 "$S" stop long-3
status_of 143 "$S" wait long-3
status_of 0 "$S" stop long-1
status_of 143 "$S" wait long-1
check 'with all it had started' "$(gone "$(cat "$T/sleep-1")" && echo gone)" = gone

# --- a daemon that is killed while a job runs, and `wait` waits for it
submit --name over -- sh -c 'echo begun; while [ ! -e "$0" ]; do sleep 0.05; done; echo done; exit 5' "$T/now"
until_true 20 is over running || fail "over does not run"
"$S" wait over >"$T/wait" 2>&1 &
WAIT=$!
"$S" logs -f over >"$T/follow" 2>&1 &
LOGS=$!
until_true 20 waits $WAIT || fail "nobody waits"
until_true 20 grep -q begun "$T/follow" || fail "nobody follows"
daemon_kill
supervised() { pgrep -f "$T/now" >/dev/null; }
touch "$T/now"
over_now() { ! supervised; }
until_true 20 over_now || fail "over does not end"
daemon_start
wait $WAIT
check 'wait: over a restart' $? = 5
wait $LOGS
check 'logs -f: over a restart' "$(grep -c '^done$' "$T/follow")" = 1
check 'what ran goes on' "$(job long-2 state)" = running
status_of 0 "$S" stop --now long-2
"$S" wait long-2 >"$T/said" 2>&1
check 'stopped at once, by whichever signal came first' "$?" -ge 137
check_books_empty
finish
