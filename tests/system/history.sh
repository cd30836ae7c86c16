#!/bin/sh
# The history: it has what happened, outlives a daemon that is killed while it writes, and a file that is locked, damaged or finds no room
# harms nothing but itself.
export LIMIT=150
. "$(dirname "$0")/lib.sh"
software_only "the memory of one GPU is known"
F=$T/state/history.db
file() { "$B/tests/system/history-file" "$F" "$@"; }
# total BY KEY FIELD: of the last ten minutes.
total() { "$B/sluice" history --last 10m --by "$1" --json | json "totals.key=$2.$3"; }
known() { [ "$(total program holder resident_bytes)" -gt 0 ]; }
resident() { "$B/sluice" history --last 2s --by program --json | json "totals.0.most_bytes"; }

config 'resolvers: swap wait'
config "metrics: $T/metrics.sock"
daemon_start
printf 'projects:\n  p:\n    gpu: {quota: 1}\n  gone:\n    gpu: {quota: 0}\n' >"$T/projects.yaml"
"$B/sluice" project apply "$T/projects.yaml" >"$T/said" 2>&1 || fail "no projects: $(cat "$T/said")"
$RUN --request 200MiB --limit 900MiB --name a --project p -- "$P/holder" --bytes 300MiB --ms 120000 >"$T/a" &
a=$!
$RUN --observe --name 'b"<&' -- "$P/holder" --bytes 200MiB --ms 120000 >"$T/b" &
b=$!
wait_event "$T/a" held
wait_event "$T/b" held
until_true 15 known || fail "nothing is known: $("$B/sluice" history --json 2>&1)"
sleep 3
# Allocated: the larger of the request and what is there; nothing works on the software GPU.
for by in user project gpu workload program; do
	"$B/sluice" history --last 5m --by $by >"$T/table" 2>&1
	check "a table by $by" $? = 0
	check_file "by $by: what was allocated" "$T/table" '[0-9]s +0.0s'
	check_file "by $by: none has waited" "$T/table" 'MiB +- +0B'
	check "by $by: CSV has a head and rows" "$("$B/sluice" history --last 5m --by $by --csv | wc -l)" -gt 2
done
most=$(total workload 1 most_bytes)
[ "$(total workload 1 name)" = a ] || most=$(total workload 2 most_bytes)
check "the most that a had: its 300 MiB and what is hidden" "$((most / 1048576))" -ge 300
check "and not what b had" "$((most / 1048576))" -lt 400
"$B/sluice" advise >"$T/table"
check_file "ten seconds are too short for advice" "$T/table" '^a .*less than 10m'
check "who was observed is counted, by name" "$("$B/sluice" advise --json | json 'names.name=b"<&.observed')" = 1
for i in 1 2; do $RUN --observe --name loop -- "$P/tenant" --bytes 20MiB --ms 1500 >"$T/loop" 2>&1 || fail "loop$i: $(tail -n 2 "$T/loop")"; done
followed() { [ "$("$B/sluice" advise --name loop --json | json names.0.runs)" = 2 ]; }
until_true 10 followed
check "runs that follow each other are not there at once" "$("$B/sluice" advise --name loop --json | json names.0.at_once)" = 1
"$B/sluice" run --observe --request 1GiB -- true 2>"$T/err"
check "--observe with a request is refused" $? = 64
"$B/sluice" history --by colour 2>"$T/err"
check "--by takes five words" "$?-$(grep -c 'write user, project' "$T/err")" = 64-1
"$B/sluice" history --from 2099-01-01 2>"$T/err"
check "a time to come is refused" $? = 64

# The sums of metrics are those of the history, to the microsecond, for a user and a project without present
# workloads.
metric() { "$B/tests/system/http-client" "$T/metrics.sock" get /metrics | grep -v '^#' | grep -F "$1 " | sed 's/.* //'; }
$RUN --request 700MiB --name c --project gone -- "$P/holder" --bytes 20MiB --ms 60000 --until "$T/c.end" >"$T/c" 2>&1 &
c=$!
wait_event "$T/c" held
sleep 2.5
# a and b stand on what c asked for; nothing is counted twice, so all of it is allocated, and no more.
for by in gpu user; do
	"$B/sluice" history --last 2s --by $by --json >"$T/one"
	check "by $by: as many GPU-seconds as there were" "$(json totals.0.allocated_gpu_s <"$T/one" | cut -c1-4 | tr -d .)" -le "$(json totals.0.span_s <"$T/one")00"
	check "by $by: and all of them" "$(json totals.0.allocated_gpu_s <"$T/one" | cut -c1-4 | tr -d .)" -ge "$(($(json totals.0.span_s <"$T/one") * 100 - 100))"
done
: >"$T/c.end"
wait $c || fail "c did not run: $(tail -n 3 "$T/c")"
ended() { "$B/sluice" history --last 3s --by project --json >"$T/one" 2>&1 && [ "$(json 'rows.key=gone.key' <"$T/one" 2>/dev/null)" = "" ]; }
until_true 10 ended
for kind in allocated used idle; do
	value=$(total project gone ${kind}_gpu_s)
	check "metrics: $kind of a project" "$(printf '%.6f' "$(metric "sluice_project_gpu_seconds_total{project=\"gone\",kind=\"$kind\"}")")" = "$value"
done
check "metrics: it was allocated something" "$(total project gone allocated_gpu_s | tr -d .)" -gt 0
check "metrics: the user's name" "$(metric "sluice_user_info{user=\"$(id -u)\",name=\"$(id -un)\"}")" = 1
check "metrics: the utilisation is known" "$(metric "sluice_gpu_time_seconds_total{gpu=\"$("$B/sluice" gpus --json | json 0.uuid)\",kind=\"known\"}" | cut -d. -f1)" -ge 3
check "metrics: the history has rows" "$(metric sluice_history_rows_total)" -gt 0
check "metrics: none were dropped" "$(metric sluice_history_dropped_total)" = 0
check "metrics: all of it is well" "$("$B/tests/system/http-client" "$T/metrics.sock" get /metrics | grep -c '^sluice_part_up.* 1$')" = 4

# Killed while it writes.
known
before=$(file number 'SELECT sum(span) FROM seconds')
daemon_kill
check "after a kill the file is whole" "$(file check)" = ok
check "and has what was asked for" "$(file number 'SELECT sum(span) FROM seconds')" -ge "$before"
# As if that had been three minutes ago.
file run 'UPDATE seconds SET t = t - 180; UPDATE gpu_seconds SET t = t - 180; UPDATE meta SET done = 0' || fail "the rows cannot be moved"
spans=$(file number 'SELECT sum(span) || "-" || sum(resident) FROM seconds')
daemon_start
minutes() { [ "$(file number "SELECT ifnull(sum(span), 0) || '-' || ifnull(sum(resident), 0) FROM minutes WHERE t < (SELECT max(t) FROM seconds) - 100")" = "$spans" ]; }
until_true 20 minutes || fail "minutes are not what the seconds were: $(file number "SELECT sum(span) || '-' || sum(resident) FROM minutes") of $spans"
check "the minutes of before are made up for" "$(minutes && echo yes)" = yes
check "who lives on is the same one" "$(file number 'SELECT count(*) FROM workloads')" = 5

# Locked: it waits, and nothing waits for it.
"$B/tests/system/history-file" "$F" lock 4 >"$T/lock" &
until_true 5 grep -q locked "$T/lock"
"$B/sluice" ps >/dev/null
check "ps while the file is locked" $? = 0
"$B/sluice" history --last 1m >/dev/null
check "so does history" $? = 0
wait $!
gaps() { [ "$(file number 'SELECT max(t + span) - min(t) - (SELECT sum(span) FROM gpu_seconds WHERE t > (SELECT max(t) FROM gpu_seconds) - 60) FROM gpu_seconds WHERE t > (SELECT max(t) FROM gpu_seconds) - 60')" -le 1 ]; }
until_true 10 gaps || fail "the time in which it was locked is missing"

# Two years of hours: a question for them keeps no other waiting.
file fill 17520 20 || fail "the file cannot be filled"
"$B/sluice" history --last 729d --by program --step 6h --json >"$T/years" &
years=$!
answers=0
while kill -0 $years 2>/dev/null; do
	"$B/sluice" ps >/dev/null && answers=$((answers + 1))
done
wait $years
check "two years are added up" "$?-$(json 'totals.#' <"$T/years")" = 0-7
check "while others were answered" $answers -gt 0
# Questions without their askers are dropped: the next one is answered.
gone=
for i in $(seq 70); do
	timeout 0.5 "$B/sluice" history --last 729d --by program --step 6h --json >/dev/null 2>&1 &
	gone="$gone $!"
done
# shellcheck disable=SC2086 # a list of pids is meant
wait $gone
"$B/sluice" history --last 1m >/dev/null
check "those whose askers are gone are in nobody's way" $? = 0
"$B/sluice" history --last 729d --by workload --step 1h --json >"$T/err" 2>&1
check "what is too much is refused" "$?-$(grep -c "longer steps" "$T/err")" = 75-1

# The clock was a month ahead when the daemon started, and is right now: the history goes on from there, and answers count back from now.
daemon_stop
file run "UPDATE meta SET done = done + 2592000; INSERT INTO gpu_seconds (t, span, gpu, workload) SELECT max(t) + 2592000, 1, gpu, 0 FROM gpu_seconds;
	INSERT INTO events (serial, ms, reason, name) SELECT max(serial) + 94608000000000, ms, 'JOINED', 'ahead' FROM events"
daemon_start
$RUN --name later -- true >/dev/null 2>&1
later() { [ "$(file number "SELECT count(*) > 0 FROM events WHERE name = 'later' AND serial > (SELECT serial FROM events WHERE name = 'ahead')")" = 1 ]; }
until_true 10 later || fail "events after the clock was ahead are not written, or before: $(file number "SELECT group_concat(serial || name, ' ') FROM (SELECT * FROM events ORDER BY serial DESC LIMIT 5)")"
seen() { [ "$("$B/sluice" history --last 3s --by gpu --json | json 'totals.#' 2>/dev/null)" = 1 ]; }
until_true 10 seen || fail "after the clock was ahead nothing is shown: $("$B/sluice" history --last 3s --by gpu 2>&1)"
check "its time has not gone back" "$(file number 'SELECT max(t) > unixepoch() + 2500000 FROM gpu_seconds')" = 1
check "doctor says that the clock was ahead" "$("$B/sluice" doctor 2>&1 | tr -d '\n' | grep -c 'clock was ahead')" = 1

# Damaged where only readers look: moved aside, said, begun anew.
daemon_stop
dd if=/dev/urandom of="$F" bs=4096 seek=$(($(stat -c %s "$F") / 8192)) count=3 conv=notrunc status=none
daemon_start
"$B/sluice" history --last 729d --by program --step 6h --json >"$T/err" 2>&1
check "who reads it is told" "$?-$(grep -c 'cannot read the history' "$T/err")" = 75-1
said() { grep -q 'was damaged; it was moved to' "$T/daemon.log"; }
until_true 10 said || fail "nothing is said of the damage"
check "it was moved aside" "$(find "$T/state" -name 'history.db.damaged-*Z' | wc -l)" = 1
until_true 10 known || fail "no new one was begun"
check "the new one is whole" "$(file check)" = ok

# No room: the daemon goes on, and says so once.
daemon_stop
rm -f "$F"*
cat >"$T/front" <<'END'
#!/bin/sh
ulimit -f 300
trap "" XFSZ
exec "$@"
END
chmod +x "$T/front"
# shellcheck disable=SC2034 # lib.sh expands it
DAEMON_FRONT=$T/front
daemon_start
full() { grep -q 'cannot .* the history in' "$T/daemon.log"; }
for i in $(seq 40); do $RUN --name "s$i" -- true >/dev/null 2>&1; done
until_true 60 full || fail "nothing is said of the room"
check "it is said" "$(full && echo yes)" = yes
$RUN -- "$P/meminfo" >/dev/null 2>&1
check "programs run all the same" $? = 0
check "once" "$(grep -c 'cannot .* the history in' "$T/daemon.log")" -le 2
daemon_stop
check "it ends as always" $? = 0
kill -KILL $a $b 2>/dev/null
finish
