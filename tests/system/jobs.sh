#!/bin/sh
# Jobs on four GPUs: what gives way is parked and comes back to where it was, or is ended and begins anew; results are right;
# a daemon that is killed in between knows them again.
export BOX="--gpus 4 --memory 256MiB"
export LIMIT=110
. "$(dirname "$0")/lib.sh"
software_only "four GPUs"
config 'host_memory: 2GiB'
config 'stop_grace: 1s'
daemon_start
cat >"$T/projects.yaml" <<'YAML'
projects:
  first:
    gpu: {quota: 2}
  second:
    gpu: {quota: 2}
YAML
"$B/sluice" project apply "$T/projects.yaml" >/dev/null || fail "projects cannot be applied"

# Its last step waits for the file that is named behind it.
STEPPER="$P/stepper --ms 20 --bytes 32MiB --steps 10 --until"
# job NAME FIELD; jobs_in STATE
job() { "$B/sluice" ps --all --json | json "name=$1.$2"; }
is_in() { [ "$(job "$1" state)" = "$2" ]; }
jobs_in() { "$B/sluice" ps --all --json | grep -c "\"state\": \"$1\""; }
are_in() { [ "$(jobs_in "$2")" = "$1" ]; }
submit() {
	"$B/sluice" submit "$@" >>"$T/submit.log" || fail "not taken: sluice submit $*"
}
# ended NAME STATUS: it ends so.
ended() {
	"$B/sluice" wait "$1" >/dev/null 2>&1
	check "$1 ends" $? = "$2"
}
# right NAME ATTEMPTS: so often it began, and what it came to is right.
right() {
	"$B/sluice" logs "$1" >"$T/log.$1"
	check_file "$1 came to the right result" "$T/log.$1" '"right":true'
	check "$1 began" "$(grep -c '"begin"' "$T/log.$1")" = "$2"
}

note "--- two projects; the first has all four GPUs until the second wants its own"
for i in 1 2 3 4; do
	# shellcheck disable=SC2086 # words
	submit --project first --name "a$i" -- $STEPPER "$T/a.end"
done
until_true 30 are_in 4 running || fail "four do not run: $("$B/sluice" ps --all)"
check_file "who is over its quota was told" "$T/submit.log" 'a4: .*above the quota of project first: .* it is parked, and resumes by itself'
# shellcheck disable=SC2086 # words
submit --project second --name b1 -- $STEPPER "$T/b.end"
# shellcheck disable=SC2086 # words
submit --project second --name b2 --preempt-delay 3s -- $STEPPER "$T/b.end"
check_file "who has a delay was told" "$T/submit.log" 'b2: .*it may displace others in .*--preempt-delay'
until_true 30 are_in 2 parked || fail "two are not parked: $("$B/sluice" ps --all)"
until_true 30 is_in b1 running || fail "b1 does not run"
until_true 30 is_in b2 running || fail "b2 does not run"
check "jobs that run then" "$(jobs_in running)" = 4
"$B/sluice" events >"$T/events"
check "events: who was parked for others" "$(grep -c 'note .* a[1-4] is parked with .* comes back by itself' "$T/events")" = 2
check "events: who has to be resumed" "$(grep -c 'sluice resume' "$T/events")" = 0
# No user is told to bring back a job that the queue brings back.
parked=$(sed -n 's/.*note *\(a[1-4]\) is parked .*/\1/p' "$T/events" | head -n 1)
"$B/sluice" park "$parked" >"$T/again" 2>&1
check_file "who is parked by the queue is told so" "$T/again" 'was parked for others, and comes back by itself'
check "and not to resume it" "$(grep -c 'sluice resume' "$T/again")" = 0

note "--- the daemon is killed while two are parked"
daemon_kill
daemon_start
check "parked after that" "$(jobs_in parked)" = 2
: >"$T/b.end"
: >"$T/a.end"
for i in b1 b2 a1 a2 a3 a4; do
	ended "$i" 0
	right "$i" 1
done

note "--- the same, but who gives way is ended and begins anew"
for i in 1 2 3 4; do
	# shellcheck disable=SC2086 # words
	submit --project first --name "c$i" --on-reclaim terminate -- $STEPPER "$T/c.end"
done
until_true 30 are_in 4 running || fail "four do not run: $("$B/sluice" ps --all)"
# shellcheck disable=SC2086 # words
submit --project second --name d1 -- $STEPPER "$T/submit.log"
ended d1 0
: >"$T/c.end"
for i in 1 2 3 4; do
	ended "c$i" 0
done
cat >"$T/attempts" </dev/null
for i in 1 2 3 4; do
	"$B/sluice" logs "c$i" | grep '"begin"' >>"$T/attempts"
	"$B/sluice" logs "c$i" | grep -c '"right":true' >>"$T/rights"
done
check "beginnings of four" "$(wc -l <"$T/attempts")" = 5
check "right results of them" "$(grep -c '^1$' "$T/rights")" = 4

note "--- without the daemon: one ends, one goes on, one waits"
submit --name away -- sh -c "until [ -e $T/away.end ]; do sleep 0.05; done; exit 5"
# shellcheck disable=SC2086 # words
submit --name long -- $STEPPER "$T/long.end"
submit --name wide --gpus 4 -- true
until_true 30 is_in long running || fail "long does not run"
until_true 30 is_in away running || fail "away does not run"
supervisor=$("$B/sluice" ps --json | json 'name=away.pid')
daemon_kill
: >"$T/away.end"
until_true 20 gone "$supervisor" || fail "away does not end"
daemon_start
ended away 5
: >"$T/long.end"
ended wide 0
ended long 0
right long 1

note "--- retries, supervisors that are killed, gangs, stops"
# shellcheck disable=SC2016 # the job's own variable
submit --name flaky --retries 1 -- sh -c '[ "$SLUICE_ATTEMPT" = 2 ]'
# Killed before its program has begun, it would be started anew.
submit --name orphan -- sh -c 'echo begun; exec sleep 60'
has_begun() { "$B/sluice" logs orphan 2>/dev/null | grep -q begun; }
until_true 30 has_begun || fail "orphan does not run"
kill -KILL "$("$B/sluice" ps --json | json 'name=orphan.pid')"
until_true 30 is_in orphan failed || fail "a job whose supervisor was killed is $(job orphan state)"
submit --name before -- sleep 60
until_true 30 is_in before running || fail "before does not run"
submit --name gang --gang 4 -- true
sleep 0.2
check "tasks of a gang that does not fit run" "$(job gang running)" = 0
"$B/sluice" stop gang >/dev/null
"$B/sluice" stop before >/dev/null
ended gang 143
ended before 143
# shellcheck disable=SC2086 # words
submit --name endless -- $STEPPER "$T/never"
# Stopped while it asks for memory it may read of that before the signal reaches it.
steps() { "$B/sluice" logs "$1" 2>/dev/null | grep -q '"step"'; }
until_true 30 steps endless || fail "endless does not run"
"$B/sluice" stop endless >/dev/null
ended endless 143
check "it was" "$(job endless state)" = stopped
ended flaky 0
check_books_empty
finish
