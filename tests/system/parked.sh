#!/bin/sh
# A job that the queue parked comes back as soon as it fits without another job going for it. Its pause, ten times the
# cost of moving it (here 80 s), holds only for taking from others; sluice resume waives that.
export BOX='--gpus 1 --memory 512MiB --d2h 16MiB'
export LIMIT=170
. "$(dirname "$0")/lib.sh"
software_only "a slow link"
[ "$(id -u)" = 0 ] || skip "only root can be two users"
setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$B/sluice" || skip "$B cannot be read by others"
chmod 755 "$T"
as_other() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
STEPPER="$P/stepper --ms 20 --bytes 64MiB --steps 20 --until"
state_of() { "$B/sluice" ps --all --json | json "name=$1.state"; }
is_in() { [ "$(state_of "$1")" = "$2" ]; }
submit() { "$B/sluice" submit "$@" >>"$T/submit.log" 2>&1 || fail "not taken: sluice submit $*: $(tail -n 1 "$T/submit.log")"; }
# quotas OWNER GUEST
quotas() {
	printf 'projects:\n  owner:\n    gpu: {quota: %s}\n  guest:\n    gpu: {quota: %s}\n' "$1" "$2" >"$T/projects"
	"$B/sluice" project apply "$T/projects" >"$T/applied" 2>&1 || fail "no projects: $(cat "$T/applied")"
}
has_steps() { [ "$("$B/sluice" logs lent | json -n event=step)" -ge "$1" ]; }
why_says() { "$B/sluice" why lent | grep -q "$1"; }

config 'host_memory: 2GiB'
# Of two contexts and the code that compares memory; what exceeds it would keep a job from the whole GPU.
config 'context_reserve: 48MiB'
config 'stop_grace: 1s'
daemon_start
quotas 1 0

note "--- what moving costs is known from one that went by hand, the second time into files that were there"
"$B/sluice" run --name first -- "$P/stepper" --ms 20 --bytes 64MiB --steps 100000 >"$T/first" 2>&1 &
until_true 30 event "$T/first" begin || fail "first does not run: $(cat "$T/first")"
knows_rate() { "$B/sluice" dump | grep -q '"link_out_bytes_s":[1-9]'; }
for i in 1 2 3 4; do
	knows_rate && break
	"$B/sluice" park first >"$T/out" 2>&1 || fail "it cannot be parked: $(cat "$T/out")"
	"$B/sluice" resume first >"$T/out" 2>&1 || fail "it cannot be resumed: $(cat "$T/out")"
	check_file "it is back ($i)" "$T/out" 'first is back'
	sleep 0.5
done
knows_rate || fail "how fast the link is was not measured"
"$B/sluice" stop first >/dev/null || fail "it cannot be stopped"
wait $!

note "--- parked for one that is cancelled after a second"
# shellcheck disable=SC2086 # words
submit --project guest --name lent -- $STEPPER "$T/lent.end"
until_true 30 has_steps 2 || fail "lent does no steps: $("$B/sluice" why lent)"
submit --project owner --name short -- sleep 100
until_true 40 is_in lent parked || fail "it is not parked: $("$B/sluice" ps)"
until_true 30 is_in short running || fail "short does not run: $("$B/sluice" why short)"
sleep 1
"$B/sluice" stop short >/dev/null || fail "short cannot be stopped"
check "it runs again at once, and not after its pause" "$(until_true 20 is_in lent running && echo yes || echo no)" = yes
steps=$("$B/sluice" logs lent | json -n event=step)
until_true 20 has_steps $((steps + 1)) || fail "it does no more steps"

note "--- parked again: for as long as its pause lasts nobody goes for it"
# shellcheck disable=SC2086 # words
submit --project owner --name long -- $STEPPER "$T/long.end"
until_true 40 is_in long running || fail "long does not run: $("$B/sluice" why long)"
is_in lent parked || fail "lent is not parked: $("$B/sluice" ps)"
quotas 0 1
until_true 10 why_says 'stopped a moment ago' || fail "it does not say why it waits: $("$B/sluice" why lent)"
check "it waits, parked" "$(state_of lent)" = parked
check "and who has its GPU runs" "$(state_of long)" = running

note "--- unless its owner, and nobody else, wants it back"
as_other "$B/sluice" resume lent --no-wait >"$T/no" 2>&1
check "another user is refused" $? = 77
check_file "and told why" "$T/no" 'belongs to user'
check "it waits on" "$(state_of lent)" = parked
"$B/sluice" resume lent >"$T/back" 2>&1
check "its owner gets it back" $? = 0
check_file "is told what happens" "$T/back" 'lent comes back by itself, and not at once: it has a place'
check_file "and what happened" "$T/back" 'lent is back: '
check "for it goes who had its GPU" "$(state_of long)" = parked
"$B/sluice" resume long --no-wait >"$T/later" 2>&1
check "where nothing may be taken" $? = 0
check_file "it says what it waits for" "$T/later" 'long comes back by itself, and not at once: it'
check "and waits" "$(state_of long)" = parked
: >"$T/lent.end"
: >"$T/long.end"
for name in lent long; do
	"$B/sluice" wait --timeout 60s $name >/dev/null 2>&1
	check "$name ends well" $? = 0
	check "$name was begun once" "$("$B/sluice" logs $name | json -n event=begin)" = 1
	check "$name has the right result" "$("$B/sluice" logs $name | json -l event=end right)" = 1
done
finish
