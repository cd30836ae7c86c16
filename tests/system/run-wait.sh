#!/bin/sh
# `sluice run` as a job in the foreground, with real processes: what its project's limit refuses, how it waits and what ends the
# wait, and that what it borrows is taken back by parking it, over a death of the daemon.
export BOX="--gpus 1 --memory 512MiB"
export LIMIT=80
. "$(dirname "$0")/lib.sh"
software_only "one GPU"
config "data_dir: $T/data"
config 'host_memory: 1GiB'
config 'stop_grace: 1s'
daemon_start
cat >"$T/projects.yaml" <<'YAML'
projects:
  owner:
    gpu: {quota: 1}
  capped:
    gpu: {quota: 0, limit: 0.5}
YAML
"$B/sluice" project apply "$T/projects.yaml" >/dev/null || fail "projects cannot be applied"

queue() { "$B/sluice" ps --jobs --json | json "name=$1.$2" 2>/dev/null; }
is_queued() { [ "$(queue "$1" state)" = queued ]; }
is_unknown() { [ -z "$(queue "$1" state)" ]; }
says() { grep -q -- "$2" "$T/$1"; }
# holder: half of the GPU, until $T/$1.end is there.
hold() {
	"$B/sluice" run --project capped --request 0.4 --name "$1" -- sh -c "until [ -e $T/$1.end ]; do sleep 0.03; done" &
	until_true 30 runs "$1" || fail "$1 does not run"
}
runs() { "$B/sluice" ps --json | grep -q "\"name\": \"$1\""; }
# Of one that runs the list of jobs does not know in any case.
has_ended() { ! runs "$1"; }
# waiter NAME: waits behind the holder; its process in $PID.
waiter() {
	waiter_name=$1
	"$B/sluice" run --wait --project capped --request 0.4 --name "$waiter_name" -- sh -c 'echo "ran on $CUDA_VISIBLE_DEVICES"; exit 5' >"$T/$waiter_name.out" 2>"$T/$waiter_name.err" &
	PID=$!
	until_true 30 is_queued "$waiter_name" || fail "$waiter_name is not queued"
	until_true 30 says "$waiter_name.err" ' waits: ' || fail "$waiter_name does not say so"
}

note "--- a limit"
hold first
"$B/sluice" run --project capped --request 0.4 --name no -- true >"$T/no" 2>&1
check "above the limit of its project" $? = 75
check_file "it says why, and what to do" "$T/no" 'it wants 0.4 GPUs, but the limit of project capped leaves 0.1 GPUs; .*--wait waits for that'
"$B/sluice" run --request 0.8 --name no -- true >"$T/no" 2>&1
check "no room" $? = 75
check_file "it says why, too" "$T/no" 'a request of .* does not fit.*'
check_file "and what to do" "$T/no" '--wait waits until it fits'
"$B/sluice" run --project capped --name shares -- true
check "without a request it starts at once" $? = 0
"$B/sluice" run --wait --request 700GiB -- true >"$T/no" 2>&1
check "what will never fit is refused" $? = 75
"$B/sluice" run --wait --project capped --request 700GiB -- true >"$T/no" 2>&1
check "also with a limit in its way" $? = 75
check_file "it says why, and not that it is to wait" "$T/no" 'a request of 700 GiB does not fit any GPU'
"$B/sluice" run --wait --project capped --gpus 3 --request 0.4 -- true >"$T/no" 2>&1
check "so is one for more GPUs than there are" $? = 75
"$B/sluice" run --project capped --swap off --request 0.1 --name no -- true >"$T/no" 2>&1
check "without a quota" $? = 75
check_file "it says what helps" "$T/no" 'if it may be preempted (.* run: without --swap off)'
grep -e '--wait waits' "$T/no" >&2 && fail "waiting does not help"
"$B/sluice" run --request 0.2 --name first -- true >"$T/no" 2>&1
check "a name that is taken" $? = 75
check_file "it says by what" "$T/no" 'a job or workload named first is there already'

note "--- waiting"
waiter second
check_file "it says why it waits" "$T/second.err" 'second waits: it wants 0.4 GPUs, but the limit of project capped'
"$B/sluice" why second >"$T/why"
check_file "why says so" "$T/why" 'is queued, .*limit of project capped leaves 0.1'
: >"$T/first.end"
wait "$PID"
check "its exit status" $? = 5
check_file "it ran" "$T/second.out" '^ran on 0$'
check "the reason was said" "$(grep -c ' waits: ' "$T/second.err")" = 1

note "--- a run of a run has the place of the one before"
"$B/sluice" run --project capped --request 0.4 --name within -- "$B/sluice" run --project capped --request 0.4 --name within -- true
check "of the same name, and of the same part of a limit" $? = 0

note "--- what ends a wait"
hold third
waiter interrupted
kill -INT "$PID"
wait "$PID"
check "interrupted" $? = 130
until_true 30 is_unknown interrupted || fail "it is still queued"
waiter stopped
"$B/sluice" stop stopped >"$T/stop" || fail "cannot be stopped"
check_file "what stop says" "$T/stop" 'stopped: `sluice run` is out of the queue'
wait "$PID"
check "stopped" $? = 143
check "it never ran" "$(wc -c <"$T/stopped.out")" = 0

note "--- the daemon is killed while one waits"
waiter patient
daemon_kill
until_true 30 says patient.err 'the daemon went away' || fail "it does not say that the daemon went"
daemon_start
until_true 30 is_queued patient || fail "it does not wait any more"
: >"$T/third.end"
wait "$PID"
check "its exit status" $? = 5

note "--- what is borrowed is taken back"
"$B/sluice" run --project capped --request 0.5 --name borrower -- "$P/stepper" --ms 50 --bytes 32MiB --until "$T/claims.end" >"$T/borrower.out" 2>"$T/borrower.err" &
PID=$!
until_true 30 says borrower.out begin || fail "the borrower does not run"
"$B/sluice" submit --project owner --name claims -- sh -c "until [ -e $T/claims.end ]; do sleep 0.03; done" >"$T/submit"
check_file "submit says what it takes" "$T/submit" '1 task of project capped'
is_parked() { [ "$(queue borrower state)" = parked ]; }
until_true 30 is_parked || fail "the borrower is not parked: $("$B/sluice" ps)"
# For a moment it is too soon for it to be brought back, whatever is free.
comes_back() { "$B/sluice" why borrower >"$T/why" && grep -q 'it resumes when' "$T/why"; }
until_true 30 comes_back
check_file "why says that it comes back" "$T/why" 'is parked, .*it resumes when .*are free'
daemon_kill
daemon_start
check_file "the log says who is parked, by the number of its workload" "$T/daemon.log" 'run [0-9]* .borrower.: task 0 is to be parked for claims'
check "parked after a death of the daemon" "$(queue borrower state)" = parked
: >"$T/claims.end"
wait "$PID"
check "it ends well" $? = 0
check_file "it came to the right result" "$T/borrower.out" '"right":true'
check "it began" "$(grep -c begin "$T/borrower.out")" = 1
"$B/sluice" wait claims >/dev/null 2>&1
check "so does who took it" $? = 0

note "--- rules hold for what is set, and for what comes back"
"$B/sluice" run --project capped --request 0.1 --name small -- sh -c "until [ -e $T/small.end ]; do sleep 0.03; done" &
PID=$!
until_true 30 runs small || fail "small does not run"
"$B/sluice" set small --request 0.9 >"$T/no" 2>&1 && fail "more than the limit of its project was set"
check_file "it says why" "$T/no" 'the limit of project capped is 0.5 GPUs'
"$B/sluice" set small --swap off >"$T/no" 2>&1 && fail "it cannot be taken back any more, and its project has no quota"
check_file "it says why, too" "$T/no" 'the quota of project capped is 0'
"$B/sluice" set small --request 0.4 --limit 0.5 >/dev/null || fail "what the limit leaves to it with its own part is refused"
"$B/sluice" park small >/dev/null || fail "it cannot be parked"
hold other
"$B/sluice" resume small >"$T/no" 2>&1 && fail "both have more than the limit of their project"
check_file "resume says why" "$T/no" 'the limit of project capped leaves 0.1 GPUs'
"$B/sluice" set small --request 0.1 >/dev/null || fail "what is parked by hand cannot be set"
"$B/sluice" resume small >/dev/null || fail "what the limit leaves does not come back"
: >"$T/other.end"
: >"$T/small.end"
wait "$PID"
until_true 30 has_ended other || fail "other does not end"

note "--- what is parked for others is set"
"$B/sluice" run --project capped --request 0.5 --name lasts -- "$P/stepper" --ms 50 --bytes 32MiB --until "$T/lasts.end" >"$T/lasts.out" 2>&1 &
PID=$!
until_true 30 says lasts.out begin || fail "it does not run"
"$B/sluice" submit --project owner --name again -- sh -c "until [ -e $T/again.end ]; do sleep 0.03; done" >/dev/null
lasts_is_parked() { [ "$(queue lasts state)" = parked ]; }
until_true 30 lasts_is_parked || fail "it is not parked: $("$B/sluice" ps)"
"$B/sluice" set lasts --swap off >"$T/no" 2>&1 && fail "it could not come back without a quota"
"$B/sluice" set lasts --priority 5 >/dev/null || fail "its priority cannot be set"
lasts_is_parked || fail "it is not parked any more"
"$B/sluice" set lasts --request 0 >/dev/null || fail "its request cannot be taken away"
: >"$T/lasts.end"
wait "$PID"
check "the queue lets go of what asks for nothing" $? = 0
check_file "it came to the right result" "$T/lasts.out" '"right":true'
: >"$T/again.end"
"$B/sluice" wait again >/dev/null 2>&1
check "so does who took its place" $? = 0
check_books_empty
finish
