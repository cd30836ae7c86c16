# shellcheck shell=sh
# jobs.sh - what tests/crash does with jobs; read by it
#
# At each step of a job's life its daemon is killed, and the job still runs once, with its exit status told (`a_job`). Then the
# same in the middle of what is done to jobs, by `jobs_at`, STEP[:TIME]/SCENE:
#
#	stop      stopped by hand: it is stopped, and not started again for it has retries left
#	reclaim   ended for another project: that one runs, and it begins anew, once, without this being its failure
#	park      parked for another project: it comes back and finds its memory as it was
#	gang      two tasks, one of which fails: each ran once, the other was ended, and the job has its status
#	shim      it only runs; the supervisor is killed with the daemon: if it was told to go it may be lost, but it never runs twice
#	shimstop  it is stopped by hand, and the supervisor is killed with the daemon: it is stopped
# shellcheck disable=SC2034,SC2154 # the script that reads this has them
jobs_at='
D_JOB_STOP_TAKEN/stop D_JOB_STOP_STORED/stop D_STOP_BOOKED/stop D_STOP_SENT/stop D_JOB_OVER/stop D_JOB_ENDED/stop
D_JOB_STOP_TAKEN/reclaim D_JOB_STOP_STORED/reclaim D_STOP_BOOKED/reclaim D_STOP_SENT/reclaim D_JOB_OVER/reclaim
D_JOB_WAITS:2/reclaim D_JOB_GOES:2/reclaim D_JOB_WAITS:3/reclaim
D_JOB_PARK_TAKEN/park D_EVICT_SENT/park D_SWAPPED/park D_JOB_PARKED/park D_JOB_GOES:2/park
D_JOB_RESUME_TAKEN/park D_RESTORE_SENT/park D_SWAPPED:2/park D_JOB_RESUMED/park
D_JOB_WAITS/gang D_JOB_WAITS:2/gang D_JOB_WRITTEN:2/gang D_JOB_GOES/gang D_JOB_GOES:2/gang D_JOB_OVER/gang D_JOB_STOP_STORED/gang
D_STOP_SENT/gang D_JOB_OVER:2/gang
D_JOB_WAITS/shim D_JOB_WRITTEN/shim D_JOB_GOES/shim D_JOB_STOP_STORED/shimstop D_STOP_SENT/shimstop'

# queue NAME OPTIONS...: submitted, as by a user who hears that the daemon is gone and looks whether the job is there.
queue() {
	queue_end=$(($(now_ms) + 10000)) queue_name=$1
	shift
	until "$B/sluice" submit --name "$queue_name" "$@" >"$T/said" 2>&1 ||
		{ until_true 10 daemon_up && "$B/sluice" ps --all --json | json "name=$queue_name.job" >/dev/null; }; do
		[ "$(now_ms)" -lt $queue_end ] || {
			wrongly "$queue_name is not taken: $(cat "$T/said")"
			return
		}
		sleep 0.05
	done
}
# ends NAME: how, in $ended_with.
ends() {
	ends_by=$(($(now_ms) + 20000))
	while :; do
		"$B/sluice" wait --timeout 15s "$1" >"$T/said" 2>&1
		ended_with=$?
		[ $ended_with = 69 ] && [ "$(now_ms)" -lt $ends_by ] || break
		sleep 0.05
	done
}
# ended NAME STATUS...: with one of these.
ended() {
	ends "$1"
	ended_name=$1 ended_wanted=
	shift
	for ended_status in "$@"; do
		[ $ended_with != "$ended_status" ] || return 0
		ended_wanted="$ended_wanted $ended_status"
	done
	wrongly "$ended_name ended with $ended_with instead of$ended_wanted: $(cat "$T/said"); $("$B/sluice" why "$ended_name" 2>&1)"
}
# ran NAME TIMES
ran() {
	ran_times=$(cat "$T/ran.$1" 2>/dev/null | wc -l)
	[ "$ran_times" = "$2" ] || wrongly "$1 ran $ran_times times instead of $2"
}
state_of() { "$B/sluice" ps --all --json | json "name=$1.state"; }
in_state() { [ "$(state_of "$1")" = "$2" ]; }
began() { [ -s "$T/ran.$1" ]; }
# Of this box: its record lies there.
kill_shims() {
	for shim in /proc/[0-9]*; do
		case $(readlink "$shim/fd/5" 2>/dev/null) in
		"$T"/data/jobs/*) kill -KILL "${shim#/proc/}" && until_true 5 gone "${shim#/proc/}" ;;
		esac
	done
}
jobs_on_disk() { [ "$("$B/sluice" ps --all --json | json '#')" = "$1" ] && [ "$(find "$T/data/jobs" -mindepth 1 -maxdepth 1 -type d | wc -l)" = "$1" ]; }
# begin STEP: a daemon that dies there, and those after it.
begin() {
	FAILED=0
	rm -rf "${T:?}"/*
	printf 'data_dir: %s\nstop_grace: 1s\n' "$T/data" >"$CONFIG"
	[ "$phase" != JOB_FORGOTTEN ] || echo 'keep_jobs: 1' >>"$CONFIG"
	supervise "$1" &
	supervisor=$!
	until_true 10 daemon_up || wrongly "the daemon does not answer"
}
# finish_jobs NUMBER: so many are kept.
finish_jobs() {
	until_true 10 passed "${step%:*}" || wrongly "nobody passed the step"
	until_true 5 deaths 1 || wrongly "the daemon did not die"
	until_true 12 books_empty || wrongly "the books are not empty: $(tr -d ' \n' <"$T/books.json" | cut -c 1-600)"
	until_true 5 jobs_on_disk "$1" || wrongly "on the disk: $(ls "$T/data/jobs")"
	log_is_clean
	: >"$T/over"
	kill_daemon
	wait $supervisor
}

# a_job STEP PHASE
a_job() {
	step=$1 phase=$2
	begin "$step"
	for job in first second; do
		queue $job --request 16MiB -- sh -c "echo ran >>'$T/ran.$job'; sleep 0.3; exit 7"
		ended $job 7
		ran $job 1
	done
	# Of the forgotten one nothing, of the others all is there.
	[ "$phase" = JOB_FORGOTTEN ] && finish_jobs 1 || finish_jobs 2
}

projects() {
	printf 'projects:\n  text:\n    gpu: {quota: 0}\n  vision:\n    gpu: {quota: 1}\n' >"$T/projects.yaml"
	"$B/sluice" project apply "$T/projects.yaml" >"$T/said" 2>&1 || wrongly "projects cannot be applied: $(cat "$T/said")"
}
# The one that others are stopped for.
claims() {
	queue fit --project vision -- sh -c "echo ran >>'$T/ran.fit'; sleep 0.3; exit 5"
	ended fit 5
	ran fit 1
}
stops() {
	queue x --retries 1 -- sh -c "trap 'exit 9' TERM; echo ran >>'$T/ran.x'; while :; do sleep 0.05; done"
	until_true 10 began x || wrongly "x does not run"
	# A submitter without an answer asks again, until it is so.
	until "$B/sluice" stop x >"$T/said" 2>&1 || grep -q 'has ended' "$T/said"; do
		until_true 10 daemon_up || break
	done
	ended x "$@"
	in_state x stopped || wrongly "x is $(state_of x)"
	ran x 1
}
scene_stop() {
	stops 9
	finish_jobs 1
}
scene_shimstop() {
	: >"$T/shims-die"
	stops 9 143
	finish_jobs 1
}
scene_reclaim() {
	projects
	# shellcheck disable=SC2016 # the job's own variable
	queue crawl --project text --on-reclaim terminate -- sh -c 'trap "exit 3" TERM
		echo ran >>"$0"; [ "$SLUICE_ATTEMPT" = 1 ] || exit 7; while :; do sleep 0.05; done' "$T/ran.crawl"
	until_true 10 began crawl || wrongly "crawl does not run"
	claims
	ended crawl 7
	ran crawl 2
	finish_jobs 2
}
scene_park() {
	projects
	queue crawl --project text -- sh -c "echo ran >>'$T/ran.crawl'; exec '$C/swap-subject' --bytes 60MiB --until '$T/enough' --ms 25000 --idle-ms 50 --capture-ms 10"
	until_true 10 holds crawl || wrongly "crawl holds nothing"
	claims
	until_true 10 in_state crawl running || wrongly "crawl is $(state_of crawl)"
	until_true 10 passed "${step%:*}"
	until_true 10 deaths 1
	until_true 10 in_state crawl running || wrongly "crawl is $(state_of crawl)"
	sleep 0.4
	: >"$T/enough"
	ended crawl 0
	ran crawl 1
	"$B/sluice" logs crawl >"$T/victim" 2>&1
	grep -q '"lost_bytes":0' "$T/victim" || wrongly "its memory: $(tail -n 1 "$T/victim")"
	lost=$(sed -n 's/.*"lost_bytes":\([0-9]*\).*/\1/p' "$T/victim" | sum)
	[ "$lost" = 0 ] || wrongly "$lost bytes lost"
	finish_jobs 2
}
holds() { "$B/sluice" logs "$1" 2>/dev/null | grep -q '"held"'; }
scene_gang() {
	# shellcheck disable=SC2016 # the job's own variable
	queue x --request 16MiB --gang 2 -- sh -c 'trap "exit 0" TERM
		echo ran >>"$0.$SLUICE_TASK"; [ "$SLUICE_TASK" = 0 ] || { sleep 0.3; exit 4; }; while :; do sleep 0.05; done' "$T/ran.x"
	ended x 4
	ran x.0 1
	ran x.1 1
	finish_jobs 1
}
scene_shim() {
	: >"$T/shims-die"
	queue x --request 16MiB -- sh -c "echo ran >>'$T/ran.x'; sleep 0.3; exit 7"
	ended x 7 1
	[ "$ended_with" = 7 ] || [ "$step" = D_JOB_GOES ] || wrongly "x ended with $ended_with"
	# Lost: it may have been killed before its first word.
	[ "$ended_with" = 1 ] && ! began x || ran x 1
	finish_jobs 1
}
# a_scene STEP SCENE
a_scene() {
	step=$1 phase=JOB
	begin "$step"
	"scene_$2"
}
