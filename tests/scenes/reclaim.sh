# reclaim - the scene of two projects that share four GPUs, for reclaim-park.sh and reclaim-terminate.sh; sourced
#
# RECLAIM says what becomes of a job whose GPU is taken back. Each project is guaranteed two of four GPUs. The first is alone
# and uses all of them, by four jobs; then the second submits two. Two jobs of the first give way, the second's run, and when
# they have ended the two come back by themselves and finish. Every job has a result that shows whether each of its
# steps was done once, on what the one before left.
# Off: the first project is guaranteed all four, so nothing is taken back.
# shellcheck shell=sh
STEPS=40
on config 'host_memory: 2GiB'
off config 'host_memory: 2GiB'
daemon_start
cat >"$T/projects" <<EOF
projects:
  first:
    gpu: {quota: $([ "$SCENE" = off ] && echo 4 || echo 2)}
  second:
    gpu: {quota: $([ "$SCENE" = off ] && echo 0 || echo 2)}
EOF
"$B/sluice" project apply "$T/projects" >/dev/null || fail "no projects"

submit() { # PROJECT NAME STEPS SEED
	"$B/sluice" submit --project "$1" --name "$2" --on-reclaim "$RECLAIM" --env "TMPDIR=$T" \
		-- "$P/stepper" --bytes 64Mi --steps "$3" --ms 100 --seed "$4" >>"$T/submitted" 2>&1 || fail "$2: $(tail -n 1 "$T/submitted")"
}
job() { "$B/sluice" ps --all --json | json "name=$1.$2"; }
in_state() { "$B/sluice" ps --all --json | json -n "state=$1"; }
are() { [ "$(in_state "$1")" = "$2" ]; }
is() { [ "$(job "$1" state)" = "$2" ]; }
lines() { "$B/sluice" logs "$1" | json -n "event=$2"; }
steps() { "$B/sluice" logs "$1" >"$T/log.$1" 2>/dev/null && json -n event=step <"$T/log.$1" || echo 0; }

for i in 1 2 3 4; do
	submit first "first-$i" $STEPS $i
done
until_true 20 are running 4 || fail "four jobs do not run: $("$B/sluice" ps --jobs)"
for i in 1 2 3 4; do
	until_true 20 test "$(steps "first-$i")" -ge 3 || until_true 20 sh -c "[ \"\$('$B/sluice' logs first-$i | grep -c step)\" -ge 3 ]"
done
for i in 1 2; do
	submit second "second-$i" 10 1$i
done
for i in 1 2; do
	promise "second-$i runs while the first project still works" "$(until_true 12 is second-$i running && [ "$(in_state done)" = 0 ] && echo yes || echo no)" = yes
done
