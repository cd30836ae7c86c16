#!/bin/sh
# A job whose supervisor lives is not started a second time, whatever becomes of the journal: a damaged record of its
# workload, or no journal at all. How it ends counts, and it can be stopped.
BOX='--gpus 1 --memory 512MiB'
LIMIT=90
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
software_only "each job gets a GPU"
config "data_dir: $T/data"
config 'stop_grace: 1s'
daemon_start

job() { "$B/sluice" ps --all --json | json "name=$1.$2"; }
is() { [ "$(job "$1" state)" = "$2" ]; }
begun() { [ -s "$T/$1.begun" ]; }
# damage HOW: one bit of the record of the only workload, or all of the journal.
damage() {
	[ "$1" = bit ] || {
		rm "$T/state/run.db"
		return
	}
	LC_ALL=C sed 's/"name":"\([a-z]*-\)/"nbme":"\1/g' "$T/state/run.db" >"$T/damaged"
	cmp -s "$T/damaged" "$T/state/run.db" && fail "nothing of the journal is damaged"
	cat "$T/damaged" >"$T/state/run.db"
}
# runs NAME HOW RETRIES: a job that goes on until its file is there, and a daemon that has lost it.
runs() {
	"$B/sluice" submit --retries "$3" --request 128MiB --name "$1" -- sh -c \
		"echo \$\$ >>$T/$1.begun; until [ -e $T/$1.end ]; do sleep 0.05; done; exit 7" >"$T/said" 2>&1
	until_true 10 begun "$1" || fail "$1 does not begin: $(cat "$T/said")"
	until_true 10 is "$1" running
	daemon_kill
	damage "$2"
	daemon_start
}
attempts() { wc -l <"$T/$1.begun"; }

for how in bit file; do
	runs "once-$how" "$how" 0
	check "$how: it runs on" "$(job "once-$how" state)" = running
	"$B/sluice" why "once-$how" >"$T/why"
	check_file "$how: and says so" "$T/why" 'ago; sluiced has lost what it knew of it, and its processes run on'
	# Another daemon knows no more.
	daemon_kill
	daemon_start
	sleep 1.5
	check "$how: it runs on after that" "$(job "once-$how" state)" = running
	: >"$T/once-$how.end"
	"$B/sluice" wait --timeout 30s "once-$how" >"$T/said" 2>&1
	check "$how: its exit status is seen" $? = 7

	runs "twice-$how" "$how" 1
	check "$how: it runs alone" "$(attempts "twice-$how")" = 1
	: >"$T/twice-$how.end"
	"$B/sluice" wait --timeout 30s "twice-$how" >"$T/said" 2>&1
	check "$how: with its retry it ended with" $? = 7
	check "$how: begun by then" "$(attempts "twice-$how")" = 2

	runs "stopped-$how" "$how" 1
	"$B/sluice" park "stopped-$how" >"$T/said" 2>&1
	check "$how: it cannot be parked" $? -gt 0
	check_file "$how: and where to look is told" "$T/said" 'does not reach it: sluice why stopped-'
	"$B/sluice" stop "stopped-$how" >"$T/said" 2>&1
	check "$how: it can be stopped" $? = 0
	"$B/sluice" wait --timeout 30s "stopped-$how" >"$T/said" 2>&1
	check "$how: it was stopped with" $? = 143
	check "$how: it is not started again" "$(attempts "stopped-$how")" = 1
done

# SIGTERM does not end it.
"$B/sluice" submit --request 128MiB --name hard -- sh -c "trap '' TERM; echo \$\$ >$T/hard.begun; while :; do sleep 0.1; done" >"$T/said"
until_true 10 begun hard
until_true 10 is hard running
daemon_kill
damage file
daemon_start
"$B/sluice" stop hard >"$T/said" 2>&1
"$B/sluice" wait --timeout 30s hard >"$T/said" 2>&1
check 'a hard one is killed' $? = 137
check 'and is gone' "$(gone "$(cat "$T/hard.begun")" && echo yes)" = yes
check_books_empty
daemon_stop
finish
