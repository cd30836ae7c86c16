#!/bin/sh
# What the daemon needs for projects and jobs is damaged, shut or full: it shares GPUs all the same, and doctor names the file and the remedy.
export BOX="--gpus 1 --memory 256MiB"
export LIMIT=80
. "$(dirname "$0")/lib.sh"
software_only "the daemon is started several times"
config "data_dir: $T/data"
# It would fill the small disk.
config 'history: no'
S="$B/sluice"
doctor() { COLUMNS=400 "$S" doctor >"$T/doctor" 2>&1; }
apply() {
	printf 'projects:\n  vision:\n    gpu: {quota: %s}\n' "$1" >"$T/projects.yaml"
	"$S" project apply "$T/projects.yaml" >"$T/said" 2>&1
}

note "--- all is well"
daemon_start
apply 1 || fail "projects cannot be applied"
for i in 1 2; do
	"$S" submit --name "kept-$i" --preemptible no --project vision -- sleep 60 >"$T/said" 2>&1 || fail "not taken: $(cat "$T/said")"
done
doctor
check_file "where the supervisor is" "$T/doctor" "^ok +shim +$B/sluice-shim starts jobs$"
check_file "projects" "$T/doctor" "^ok +projects +2 projects in $T/data/state.db$"
check_file "jobs" "$T/doctor" "^ok +jobs +2 jobs in $T/data/state.db$"

# The second one's; a job of one task shares its number with the workload.
second=$(ls "$T/data/jobs" | sort -n | tail -n 1)
note "--- a damaged job, and a supervisor that cannot be executed"
sql() { "$B/tests/system/history-file" "$T/data/state.db" run "$1"; }
daemon_stop
sql "UPDATE job SET checksum = 1 WHERE number = $second"
cp "$B/sluice-shim" "$T/shut-shim"
chmod 644 "$T/shut-shim"
SLUICE_SHIM="$T/shut-shim" daemon_start
doctor
check "doctor fails" $? = 1
check_file "the supervisor: file" "$T/doctor" "^FAIL +shim +$T/shut-shim cannot be executed, .*no job can run$"
check_file "the supervisor: remedy" "$T/doctor" '-> chmod 755 it, or set SLUICE_SHIM'
check_file "a job: file" "$T/doctor" "^warn +jobs +job $second in $T/data/state.db is damaged: its checksum is wrong$"
check_file "a job: remedy" "$T/doctor" "-> put back a copy, or remove it with .DELETE FROM job WHERE number = $second. in sqlite3, and restart sluiced$"
check "the other job is there" "$("$S" ps --all --json | json '#')" = 1

note "--- nothing can be read"
daemon_stop
cp "$T/data/state.db" "$T/copy"
head -c 8192 /dev/zero | tr '\0' x >"$T/data/state.db"
daemon_start
doctor
for what in projects jobs; do
	check_file "the database: file" "$T/doctor" "^FAIL +$what +cannot read the $what in $T/data/state.db: file is not a database$"
done
check_file "the database: remedy" "$T/doctor" '-> it is damaged; put back a copy, save what `sqlite3 FILE .recover` still finds, or move it away; then restart sluiced'
"$S" run --name beside -- true >"$T/said" 2>&1
check "a program runs all the same" $? = 0

note "--- repaired"
daemon_stop
cp "$T/copy" "$T/data/state.db"
sql "DELETE FROM job WHERE number = $second"
rm -r "$T/data/jobs/$second"
daemon_start
doctor
check "nothing is wrong with any of them" "$(grep -cE '^ok +(shim|projects|jobs) ' "$T/doctor")" = 3

"$S" stop --now kept-1 >/dev/null
"$S" wait kept-1 >/dev/null

note "--- a disk that is full"
mkdir "$T/small"
if mount -t tmpfs -o size=64k tmpfs "$T/small" 2>/dev/null; then
	daemon_stop
	config "data_dir: $T/small"
	sed -i "/^data_dir: .*data$/d" "$CONFIG"
	daemon_start
	apply 1
	cat /dev/zero >"$T/small/fill" 2>/dev/null
	apply 0.5
	"$S" submit --name none -- true >"$T/said" 2>&1
	check "a job for which there is no room is refused" $? = 75
	doctor
	check_file "projects that were not stored" "$T/doctor" "^warn +projects +cannot store the projects in $T/small/state.db: .* full$"
	check_file "jobs that were not stored" "$T/doctor" "^FAIL +jobs +cannot store job [0-9]+ in $T/small/jobs: No space left on device$"
	check_file "make room" "$T/doctor" '-> the disk is full; make room, and try again$'
	rm "$T/small/fill"
	apply 0.5
	"$S" submit --wait --name some -- true >"$T/said" 2>&1
	doctor
	check "once there is room" "$(grep -cE '^ok +(shim|projects|jobs) ' "$T/doctor")" = 3
	daemon_stop
	umount "$T/small"
fi
finish
