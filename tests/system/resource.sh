#!/bin/sh
# Compute resources on the command line: root's for all, a user's own within its bounds, one of a project.
. "$(dirname "$0")/lib.sh"
software_only "two users"
[ "$(id -u)" = 0 ] || skip "only root can be two users"
setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$B/sluice" || skip "$B cannot be read by others"
R="$B/sluice resource"
chmod 755 "$T"
config "data_dir: $T/data
bounds:
  default: {max_limit: 0.5}"
daemon_start
as_other() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
printf 'projects:\n  vision:\n    gpu: {quota: 1}\n' >"$T/projects.yaml"
"$B/sluice" project apply "$T/projects.yaml" >/dev/null || fail "no project"

note "root's"
$R apply small --request 0.1 --limit 0.25 --priority 3 --project vision >"$T/said"
check "apply" $? = 0
check "is said" "$(cat "$T/said")" = "compute resource small is defined"
check "an action that is none" "$($R aply 2>&1 | head -n 1)" = "sluice resource: unknown action 'aply'; did you mean 'apply'?"
check "no action" "$($R 2>&1 | head -n 1)" = "sluice resource: write apply NAME, list or delete NAME"
$R apply large --limit 0.75 >/dev/null || fail "large"
$R apply bad --request 0.5 --limit 0.25 >"$T/said" 2>&1
check "a limit below the request" $? = 64
$R apply lost --request 0.1 --project nope >"$T/said" 2>&1
check "a project that is not there" $? = 75
check "both are listed" "$($R list --json | json '#')" = 2
$R list | tr -s ' ' >"$T/said"
check_file "with what they ask for" "$T/said" 'small for all vision 0\.1 0\.25 1 3'
"$B/sluice" run --resource small -- "$B/sluice" ps --json >"$T/ps"
check "run takes its project" "$(json 'project=vision.priority' <"$T/ps")" = 3
"$B/sluice" run --resource small --project default -- true
check "and no other one is named" $? = 0

note "a user's own"
as_other $R apply mine --request 0.2 --limit 0.4 >"$T/said" 2>&1 || fail "mine: $(cat "$T/said")"
as_other $R apply small --request 0.3 >/dev/null || fail "one's own of a name that is for all"
check "completion of a resource" "$("$B/sluice" help --complete -- run --resource '' | sort -u | tr '\n' ' ')" = 'large mine small '
as_other $R apply greedy --limit 0.75 >"$T/said" 2>&1
check "beyond the user's bounds" $? = 75
check_file "which is said" "$T/said" '^sluice resource: refused: .*administrator'
check "root's and one's own are listed" "$(as_other $R list --json | json '#')" = 4
as_other "$B/sluice" run --resource small -- "$B/sluice" ps --json >"$T/ps"
as_other $R list | tr -s ' ' >"$T/said"
check_file "with whose they are" "$T/said" '^mine nobody - 0\.2 0\.4 1 0'
check "one's own goes first" "$(json 'user=nobody.project' <"$T/ps")" = default
$R delete mine >"$T/said" 2>&1
check "root's delete is of those for all" $? = 75
as_other $R delete large >"$T/said" 2>&1
check "a user's is of its own" $? = 75
for i in $(seq 14); do
	as_other $R apply "n$i" --request 0.1 >/dev/null || fail "n$i"
done
as_other $R apply n15 --request 0.1 >"$T/said" 2>&1
check "16 at most" $? = 75

note "a new daemon"
daemon_stop
daemon_start
check "knows them" "$($R list --json | json '#')" = 18
as_other $R delete mine >/dev/null
check "delete" $? = 0
daemon_stop
finish
