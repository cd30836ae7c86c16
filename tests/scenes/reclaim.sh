#!/bin/sh
# reclaim - the scene of two projects that share four GPUs, for reclaim-park.sh and reclaim-terminate.sh; sourced
#
# RECLAIM says what becomes of a job whose GPU is taken back. Each project is guaranteed two of four GPUs. The first is alone
# and uses all of them, by four jobs; then the second submits two. Two jobs of the first give way, the second's run, and when
# they have ended the two come back by themselves and finish. Every job has a result that shows whether each of its
# steps was done once, on what the step before left.
# Off: the first project is guaranteed all four, so nothing is taken back.
export BOX='--gpus 4 --memory 512MiB'
export LIMIT=150
. "$(dirname "$0")/lib.sh"
: "${RECLAIM:?park or terminate}"
STEPS=20
FIRST='first-1 first-2 first-3 first-4'
SECOND='second-1 second-2'

# The last step waits until $T/PROJECT.end is there.
submit() { # PROJECT NAME STEPS SEED
	"$B/sluice" submit --project "$1" --name "$2" --on-reclaim "$RECLAIM" \
		-- "$P/stepper" --bytes 64Mi --steps "$3" --ms 50 --seed "$4" --until "$T/$1.end" >>"$T/submitted" 2>&1 ||
		fail "$2: $(tail -n 1 "$T/submitted")"
}
log() { "$B/sluice" logs "$1" 2>/dev/null; }
lines() { log "$1" | json -n "event=$2"; }
has_lines() { [ "$(lines "$1" "$2")" -ge "$3" ]; }
state_of() { "$B/sluice" ps --all --json | json "name=$1.state"; }
# how_many STATE PREFIX: jobs whose names begin so.
how_many() {
	"$B/sluice" ps --all | awk -v state="$1" -v prefix="$2" \
		'index($2, prefix) == 1 && $5 == state { n++ } END { print n + 0 }'
}
are() { [ "$(how_many "$1" "$2")" = "$3" ]; }
# What has given way: parked, or queued again.
away() { echo $(($(how_many parked first) + $(how_many queued first))); }
two_away() { [ "$(away)" = 2 ] && are running second 2; }

config 'host_memory: 2GiB'
daemon_start
cat >"$T/projects" <<EOF
projects:
  first:
    gpu: {quota: $([ "$SCENE" = off ] && echo 4 || echo 2)}
  second:
    gpu: {quota: $([ "$SCENE" = off ] && echo 0 || echo 2)}
EOF
"$B/sluice" project apply "$T/projects" >/dev/null || fail "no projects"

seed=0
for name in $FIRST; do
	seed=$((seed + 1))
	submit first $name $STEPS $seed
done
until_true 30 are running first 4 || fail "four jobs do not run: $("$B/sluice" ps --jobs)"
for name in $FIRST; do
	until_true 20 has_lines $name step 2 || fail "$name does no steps: $(log $name)"
done
for name in $SECOND; do
	seed=$((seed + 1))
	submit second $name 15 $seed
done
promise "two jobs give way, and the second project has its GPUs" "$(until_true "$([ "$SCENE" = off ] && echo 5 || echo 40)" two_away && echo yes || echo no)" = yes
note "$("$B/sluice" ps --jobs | cut -c -110)"
if [ "$SCENE" != off ]; then
	for name in $FIRST; do
		[ "$(state_of $name)" = running ] || note "$("$B/sluice" why $name)"
	done
fi
: >"$T/second.end"
# Without the feature they wait for the first's.
off touch "$T/first.end"
# shellcheck disable=SC2086 # a list of words
"$B/sluice" wait --timeout 60s $SECOND >"$T/wait.second" 2>&1
promise "the second project's jobs end well" $? = 0
promise "before the first's do" "$(how_many 'done' first)" = 0
: >"$T/first.end"
# shellcheck disable=SC2086 # a list of words
"$B/sluice" wait --timeout 90s $FIRST >"$T/wait.first" 2>&1
check "all of the first's end well, too" $? = 0
twice=0
for name in $FIRST $SECOND; do
	log $name >"$T/$name"
	check "$name has the right result" "$(json -l event=end right <"$T/$name" 2>/dev/null || echo none)" = 1
	begun=$(json -n event=begin <"$T/$name")
	[ "$begun" -gt 1 ] && twice=$((twice + 1))
	if [ "$RECLAIM" = park ]; then
		check "$name was begun once" "$begun" = 1
		case $name in
		first-*) check "$name did each step once" "$(json -n event=step <"$T/$name")" = $STEPS ;;
		esac
	fi
done
[ "$RECLAIM" = park ] || promise "two were begun anew" "$twice" = 2
scene_finish
