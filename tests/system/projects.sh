#!/bin/sh
# Projects from a file into a daemon and out again: what is taken, what is refused and how, what a restart, a crash
# in the middle, and a damaged database leave.
LIMIT=110
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
DB=$T/data/state.db
config "data_dir: $T/data"

# project WORDS...: its output into $T/out, its errors into $T/err, its status into $STATUS.
project() {
	"$B/sluice" project "$@" >"$T/out" 2>"$T/err"
	STATUS=$?
}
# refused WHAT STATUS PATTERN WORDS...
refused() {
	what=$1 want=$2 pattern=$3
	shift 3
	project "$@"
	check "$what: status" "$STATUS" = "$want"
	check_file "$what" "$T/err" "$pattern"
}
show() { "$B/sluice" project show; }

cat >"$T/lab.yaml" <<'EOF'
projects:
  vision:
    parent: research
    gpu: {quota: 2.5, over_quota_weight: 3}
    reclaim_min_runtime: 600s
  research:
    gpu: {quota: 8, limit: 16}
    memory: {limit: 512GiB}
    groups: [ml,ops]
EOF
# The history is stored from the start.
config 'history: no'
daemon_start
check 'nothing is stored before anything was said' "$(find "$T/data" 2>/dev/null)" = ""
project list --json
check 'there is the project of everybody' "$(json 0.project <"$T/out")" = default

project apply "$T/lab.yaml"
check_file 'apply' "$T/out" '^2 added, 0 changed, 0 as before$'
check_file 'more than there is' "$T/err" "warning: the projects' quotas add up to 8 GPUs, and sluiced manages 1: "
project list
check_file 'a child stands behind and below its parent' "$T/out" '^  vision +0 +2.5 +- +3 '
project list --json
check 'three projects' "$(json '#' <"$T/out")" = 3
check 'in GPUs' "$(json project=vision.gpu.quota <"$T/out")" = 2.500000
project apply "$T/lab.yaml"
check_file 'apply again' "$T/out" '^nothing to change: 2 projects are as the file says$'
show >"$T/whole.yaml"
project apply - <"$T/whole.yaml"
check_file 'what is shown can be applied' "$T/out" '^nothing to change: 3 projects'
printf 'projects: {vision: {parent: research, priority: 5}}\n' >"$T/change.yaml"
project apply "$T/change.yaml" --json
check 'no words beside JSON' "$(cat "$T/err")" = ''
check 'one changed' "$(json changed <"$T/out")" = 1

# What cannot be, with its place. Nothing of it may be done.
show >"$T/before"
printf 'projects:\n  a: {parent: vision}\n  b: {parent: nowhere}\n' >"$T/bad.yaml"
refused 'an unknown parent' 75 "bad.yaml, line 3: project b: there is no project nowhere" apply "$T/bad.yaml"
printf 'projects:\n  research: {parent: vision}\n' >"$T/bad.yaml"
refused 'a cycle through what there is' 75 'line 2: project research stands above itself: it is below vision, which is' \
	apply "$T/bad.yaml"
printf 'projects:\n  vision:\n    parent: research\n    gpu: {quota: 8.5}\n' >"$T/bad.yaml"
refused 'children above their parent' 75 'project research: its children have gpu.quota 8.5 together, and it has 8; raise' \
	apply "$T/bad.yaml"
printf 'projects:\n  a:\n    gpu:\n      quota: -4\n' >"$T/bad.yaml"
refused 'a negative number' 64 "bad.yaml, line 4: project a: gpu.quota: '-4' is negative; write 0 or more" \
	apply "$T/bad.yaml"
head -c 60 "$T/lab.yaml" >"$T/bad.yaml"
refused 'a file that was cut' 64 'bad.yaml, line [45]: not YAML' apply "$T/bad.yaml"
refused 'no file' 64 'cannot read .*/none.yaml: No such file' apply "$T/none.yaml"
refused 'a parent is not deleted' 75 'project research has children, vision for one; delete them first' delete research
refused 'nor everybody' 75 'project default holds' delete default
refused 'nor nobody' 75 'there is no project zzz; sluice project list' delete zzz
refused 'nor what is no name' 64 "'../x' is no name" delete ../x
refused 'an unknown action' 64 "unknown action 'aply'; did you mean 'apply'" aply
show >"$T/after"
check 'nothing of it was done' "$(cmp "$T/before" "$T/after" 2>&1)" = ''

# A workload keeps its project.
$RUN --request 10MiB --project vision --name w -- sleep 60 &
worker=$!
until_true 10 use w name >/dev/null || fail 'no workload'
refused 'one in use is not deleted' 75 'project vision has workloads, w for one; wait for their end' delete vision
kill "$worker" 2>/dev/null
wait "$worker" 2>/dev/null

# Killed, it is all there; numbers and names.
daemon_kill
daemon_start
show >"$T/after"
check 'a daemon that was killed left all' "$(cmp "$T/before" "$T/after" 2>&1)" = ''

# Killed in the middle of a change: the former projects or the new ones, whole.
awk 'BEGIN { print "projects:"; for (i = 0; i < 400; i++) printf "  p%d: {priority: 1}\n", i }' >"$T/one.yaml"
sed 's/priority: 1/priority: 2/' "$T/one.yaml" >"$T/two.yaml"
project apply "$T/one.yaml"
mixed=0 killed=0
for round in 1 2 3 4 5 6 7 8; do
	file=$T/one.yaml
	[ $((round % 2)) = 1 ] && file=$T/two.yaml
	"$B/sluice" project apply "$file" >/dev/null 2>"$T/err" &
	applying=$!
	sleep "0.0$round"
	daemon_kill
	wait "$applying" || killed=$((killed + 1))
	daemon_start
	show >"$T/after"
	[ "$(grep -c '^  p[0-9]*:$' "$T/after")" = 400 ] || mixed=$((mixed + 1))
	[ "$(grep '^    priority: [12]$' "$T/after" | sort -u | wc -l)" = 1 ] || mixed=$((mixed + 1))
done
note "killed before the answer: $killed of 8"
check 'never half a change' "$mixed" = 0

# A database that is damaged is said; GPUs are shared all the same, and nothing is written over it.
daemon_stop
printf 'this is no database any more, it is only text' >"$DB"
cp "$DB" "$T/copy"
daemon_start
check_file 'the log says it' "$T/daemon.log" 'cannot read the projects in .*state.db: file is not a database; it is damaged; put back a copy'
refused 'and so does apply' 75 'it is damaged; put back a copy' apply "$T/lab.yaml"
project list
check_file 'and the list, that it is not whole' "$T/err" 'sluiced could not read all projects when it started'
check 'it is left as it is' "$(cmp "$DB" "$T/copy" 2>&1)" = ''
$RUN --request 10MiB -- true
check 'programs run' $? = 0
daemon_stop
rm "$DB"
echo old >"$T/data/projects.db"
daemon_start
check_file 'a file of an earlier sluiced is named' "$T/daemon.log" 'data/projects.db is of an earlier sluiced and is not read; start that one, or remove it'
check 'and left alone' "$(cat "$T/data/projects.db")" = old
project apply "$T/lab.yaml"
check_file 'moved away, all is well' "$T/out" '^2 added'
daemon_stop
check 'it ends well' "$STATUS" = 0
finish
