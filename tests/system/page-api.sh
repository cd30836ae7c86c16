#!/bin/sh
# The page's server: each route against the command line, each refusal, rights of several users, hostile names. A client that
# asks badly, slowly or much gets nothing and stalls no other.
export BOX="--gpus 2 --memory 1GiB" LIMIT=200
. "$(dirname "$0")/lib.sh"
software_only "two GPUs"
# Any address of 127.0.0.0/8 will do, so each run has one of its own.
H=127.$((64 + $$ / 62500 % 64)).$(($$ / 250 % 250)).$(($$ % 250 + 1))
A=$H:7654
S=$T/page.sock
AT=$A
ask() { "$B/tests/system/http-client" "$@"; }
# call METHOD TARGET [BODY [HEADER...]]: the answer's head in $T/head, its body in $T/body; CODE is its status. TOKEN is sent unless it is empty.
call() {
	call_method=$1 call_target=$2 call_body=${3-}
	shift "$(($# > 3 ? 3 : $#))"
	{
		printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' "$call_method" "$call_target"
		[ -z "${TOKEN-}" ] || printf 'Authorization: Bearer %s\r\n' "$TOKEN"
		[ "$call_method" = GET ] || printf 'Content-Type: application/json\r\nContent-Length: %d\r\n' "$(printf %s "$call_body" | wc -c)"
		for call_header in "$@"; do printf '%s\r\n' "$call_header"; done
		printf '\r\n%s' "$call_body"
	} | ask "$AT" send >"$T/answer" || fail "no answer to $call_method $call_target"
	sed '/^\r$/,$d' "$T/answer" >"$T/head"
	sed '1,/^\r$/d' "$T/answer" >"$T/body"
	CODE=$(head -n 1 "$T/head" | cut -d' ' -f2)
}
body() { json "$1" <"$T/body"; }
# expect STATUS METHOD TARGET [BODY [HEADER...]]
expect() {
	expect_code=$1
	shift
	call "$@"
	check "$1 $2 $(printf %s "${3-}" | head -c 100): $(head -c 160 "$T/body" | tr '\n\r' '  ')" "$CODE" = "$expect_code"
}
token() { "$B/sluice" page --json | json token; }
as_other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

chmod 711 "$T"
config 'resolvers: [swap, wait]'
config "page: \"$A\""
config 'page_names: gpubox.example'
config 'measure_interval: 100ms'
config "data_dir: $T/data"
config 'job_log_max: 64KiB'
daemon_start
nasty='<img/src=x/onerror=alert(1)>"&'
$RUN --request 100MiB --limit 900MiB --name "$nasty" -- "$P/holder" --bytes 600MiB --ms 100000 >"$T/a" &
a=$!
wait_event "$T/a" held
long=$(head -c 10000 /dev/zero | tr '\0' x)
$RUN --request 50MiB --limit 100MiB --priority 7 --name quiet -- "$P/holder" --bytes 40MiB --ms 100000 "$long" >"$T/b" 2>&1 &
b=$!
wait_event "$T/b" held

# --- what is read: as the command line has it
TOKEN=
expect 200 GET /
check_file "it is HTML" "$T/head" '^Content-Type: text/html; charset=utf-8'
check_file "and may do nothing but ask us" "$T/head" "^Content-Security-Policy: default-src 'none'; script-src 'self';"
for header in 'X-Content-Type-Options: nosniff' 'X-Frame-Options: DENY' 'Referrer-Policy: no-referrer' \
	'Cross-Origin-Opener-Policy: same-origin' 'Cross-Origin-Resource-Policy: same-origin'; do
	check_file "$header" "$T/head" "^$header"
done
check "nothing lets other sites read" "$(grep -ci '^access-control' "$T/head")" = 0
tag=$(sed -n 's/^ETag: \(.*\)\r/\1/p' "$T/head")
expect 304 GET / '' "If-None-Match: $tag"
check "and is not sent again" "$(wc -c <"$T/body")" = 0
expect 404 GET /assets/nothing.js
expect 200 GET /assets/index.html
same() { # the state and the lists of the command line agree; numbers that move are measured, so they may need a moment
	call GET /api/state && "$B/sluice" gpus --json >"$T/gpus" && "$B/sluice" ps --json >"$T/ps" || return 1
	for g in 0 1; do
		for field in uuid shareable_bytes requests_bytes resident_bytes evicted_bytes hidden_bytes free_bytes; do
			[ "$(body gpus.$g.$field)" = "$(json $g.$field <"$T/gpus")" ] || return 1
		done
	done
	for w in 0 1; do
		for field in name user uid project command priority residency; do
			[ "$(body workloads.$w.$field)" = "$(json $w.$field <"$T/ps")" ] || return 1
		done
		for field in request_bytes limit_bytes backing_bytes hidden_bytes evicted_bytes; do
			[ "$(body workloads.$w.uses.0.$field)" = "$(json $w.$field <"$T/ps")" ] || return 1
		done
		[ "$(body workloads.$w.uses.0.gpu)" = "$(json $w.gpu_uuid <"$T/ps")" ] || return 1
	done
}
until_true 10 same
check "the state is what gpus and ps say" $? = 0
check "a hostile name comes whole" "$(body workloads.0.name)" = "$nasty"
check "it is told as JSON" "$(grep -c '^Content-Type: application/json' "$T/head")" = 1
check "nobody in particular asks" "$(json me <"$T/body" 2>&1)" = ""
check "the daemon is told" "$(body daemon.version)" = "$("$B/sluice" version --json | json version)"
expect 200 GET '/api/events?last=3'
check "three events" "$(body 'events.#')" = 3
check "and nothing was left out" "$(body complete)" = 1
"$B/sluice" events --last 3 --json >"$T/events"
check "as the command line's" "$(body events.2.text)" = "$(json -l "serial=$(body events.2.serial)" sentence <"$T/events")"
expect 200 GET '/api/events?reason=STARTED&name=quiet'
check "by name and reason" "$(body 'events.#') $(body events.0.reason) $(body events.0.name)" = "1 STARTED quiet"
expect 200 GET '/api/events?name=quiet'
check "all about one" "$(body 'events.#')" -ge 2
first=$(body events.0.serial) second=$(body events.1.serial) at=$(body events.1.ms)
expect 200 GET "/api/events?name=quiet&before=$second"
check "before another" "$(body 'events.#') $(body events.0.serial)" = "1 $first"
expect 200 GET "/api/events?name=quiet&after=$first&last=5000"
check "after another" "$(body events.0.serial)" = "$second"
expect 200 GET "/api/events?name=quiet&from_ms=$((at + 1))"
check "from a time on" "$(json "events.serial=$second.serial" <"$T/body" 2>&1)" = ""
expect 200 GET '/api/events?words=quiet%20START'
check "by parts of words" "$(body 'events.#') $(body events.0.reason) $(body events.0.name)" = "1 STARTED quiet"
expect 200 GET '/api/events?words=quiet%20START%20nowhere'
check "each of them" "$(body 'events.#')" = 0
expect 200 GET '/api/events?kind=stop,deny'
check "by kind" "$(body 'events.#')" = 0
expect 200 GET '/api/events?kind=note&last=1'
check "of which there are some" "$(body events.0.kind)" = note
expect 400 GET '/api/events?kind=note,colour'
check_file "which there are is said" "$T/body" 'deny, except, refuse, wait, stop, note'
expect 400 GET '/api/events?reason=STARTE'
check_file "and how to find one" "$T/body" 'words='
expect 400 GET "/api/events?words=$(head -c 300 /dev/zero | tr '\0' x)"
expect 400 GET "/api/events?name=$(head -c 64 /dev/zero | tr '\0' x)"
expect 200 GET /api/why/quiet
check "nothing is in its way" "$(body 'now.#')" = 0
expect 400 GET '/api/events?last=much'
ask "$A" watch /api/live 9000 >"$T/live" &
live=$!
streams() { grep -aq '^event: state' "$T/live"; }
until_true 8 streams || fail "no state comes"
"$B/sluice" set quiet --priority 8 >/dev/null
wait $live
# What is still: holders that hold. One state at once, one of what was set, and room for a measurement that moves.
check "a state comes at once, and when something changed" "$(grep -ac '^event: state' "$T/live")" -ge 2
check "and not each second" "$(grep -ac '^event: state' "$T/live")" -le 5
check "but a sign of life" "$(grep -ac '^: still here' "$T/live")" -ge 1
states_differ() { # no two that follow each other are the same but for the time
	grep -a '^data: {"me"' "$T/live" | sed 's/"\(now_ms\|uptime_ms\|age_ms\|measured_age_ms\|ran_ms\|available_bytes\)":[0-9]*//g' >"$T/states"
	[ "$(uniq "$T/states" | wc -l)" = "$(wc -l <"$T/states")" ]
}
states_differ
check "each differs from the one before" $? = 0
check_file "and what happens" "$T/live" '^data: \{.*"reason":"CHANGED_PRIORITY"'
check_file "it is an event stream" "$T/live" '^Content-Type: text/event-stream'

# --- what was
known() { call GET '/api/history?by=workload&name=quiet' && [ "$CODE" = 200 ] && [ "$(body 'rows.#')" -gt 0 ]; }
until_true 20 known
check "the history knows it" $? = 0
check "its request" "$(body rows.0.request_bytes)" = $((50 * 1048576))
expect 200 GET '/api/history?by=project&format=csv'
check_file "as CSV" "$T/body" '^t_ms,project,name,request_bytes,'
check_file "to be saved" "$T/head" '^Content-Disposition: attachment'
expect 200 GET '/api/history?by=workload&rows=no'
check "totals without rows" "$(body 'rows.#')-$(body 'totals.key=1.key')" = 0-1
expect 200 GET '/api/history?from_ms=0&steps=9'
check "so many steps at most" "$(($(now_ms) / 1000 / $(body step_s)))" -le 9
expect 400 GET '/api/history?from_ms=0&step_s=1'
expect 400 GET '/api/history?format=csv&rows=no'
expect 200 GET /api/workloads/quiet/history
check "over time, by GPU" "$(body "gpus.$(json 1.gpu_uuid <"$T/ps").request.#")" = "$(body 't_ms.#')"
check "no turns where all fit" "$(tr '{' '\n' <"$T/body" | sed -n 's/.*"turn":\[\([^]]*\)\].*/\1/p' | tr -d '0.,nul')" = ""
expect 404 GET /api/workloads/nobody/history
expect 400 GET '/api/history?by=colour'
expect 200 GET /api/advice
expect 400 GET '/api/history?from_ms=yesterday'

# --- what is changed: with a token only, and as its user
id=$("$B/sluice" ps --json | json name=quiet.workload)
expect 401 POST "/api/workloads/$id/set" '{"priority": 1}'
check_file "and says what is needed" "$T/body" 'sluice page'
TOKEN=$(token)
expect 200 POST "/api/workloads/$id/set" '{"priority": 9, "limit": "200MiB"}'
check "it is set" "$(use quiet priority) $(use quiet limit_bytes)" = "9 209715200"
call GET /api/state
check "the next state shows it" "$(body "workloads.id=$id.priority")" = 9
check "and who asks" "$(body me.admin) $(body me.uid)" = "1 $(id -u)"
expect 409 POST "/api/workloads/$id/set" '{"request": "900MiB", "limit": "50MiB"}'
expect 400 POST "/api/workloads/$id/set" '{"request": "much"}'
expect 400 POST "/api/workloads/$id/set" '{"colour": 1}'
expect 400 POST "/api/workloads/$id/set" '{}'
expect 400 POST "/api/workloads/$id/set" '[1]'
expect 400 POST "/api/workloads/$id/set" '{"priority": 1, "priority": 2}'
expect 400 POST "/api/workloads/$id/set" '{"priority":'
expect 400 POST "/api/workloads/$id/set" "$(head -c 3000 /dev/zero | tr '\0' '[')"
expect 404 POST /api/workloads/999/set '{"priority": 1}'
expect 404 POST /api/workloads/quiet/set '{"priority": 1}'
expect 200 POST "/api/workloads/$id/park" '{}'
parked() { [ "$(use quiet residency)" = parked ]; }
until_true 10 parked
check "it is parked" $? = 0
expect 409 POST "/api/workloads/$id/park" '{}'
expect 200 POST "/api/workloads/$id/set" '{"request": "50MiB", "warm_after_ms": 3600000}'
check_file "what is to be remarked is told" "$T/body" '"text": ?"quiet is parked: '
"$B/sluice" set quiet --request 50MiB --warm-after 0 >"$T/set" 2>&1
check_file "also by the command line" "$T/set" 'warning: quiet is parked: '
expect 200 POST "/api/workloads/$id/resume" ''
expect 200 POST /api/projects '{"project": "lab", "gpu": {"quota": 1.5, "limit": null}, "memory": {"quota": "64MiB"}, "groups": ["staff"], "priority": 3}'
check "a project is added" "$(body added) $(body changed)" = "1 0"
expect 200 POST /api/projects '{"project": "team", "parent": "lab", "gpu": {"quota": 0.5}}'
expect 200 POST /api/projects '{"project": "lab", "gpu": {"quota": 1, "limit": 2, "over_quota_weight": 4}}'
check "and changed" "$(body added) $(body changed)" = "0 1"
"$B/sluice" project show >"$T/projects"
for line in 'gpu: {quota: 1, limit: 2, over_quota_weight: 4}' 'memory: {quota: 64MiB' 'groups: \[staff\]' 'priority: 3' 'parent: lab' '  default:' '  team:'; do
	check_file "what was not named stays: $line" "$T/projects" "$line"
done
for wrong in '{"gpu": {"quota": 1}}' '{"project": "<b>"}' '{"project": "lab", "gpu": {"quota": -2}}' '{"project": "lab", "gpu": {"quota": 0.1234}}' \
	'{"project": "lab", "gpu": {"share": 1}}' '{"project": "lab", "gpu": 1}' '{"project": "lab", "users": "anna"}' '{"project": "lab", "color": 1}'; do
	expect 400 POST /api/projects "$wrong"
done
expect 409 POST /api/projects '{"project": "team", "gpu": {"quota": 3}}'
check_file "in the daemon's own words" "$T/body" '(team|lab)'
expect 409 POST /api/projects '{"project": "team", "parent": "nowhere"}'
expect 409 DELETE /api/projects/lab ''
check_file "a parent stays while it has children" "$T/body" 'has children'
expect 404 DELETE /api/projects/nowhere ''
expect 200 DELETE /api/projects/team ''
call GET /api/state
check "it is gone, and the others stay" "$(body 'projects.#') $(body projects.project=lab.priority)" = "2 3"
expect 200 POST /api/resources '{"name": "small", "request": 0.1, "limit": "300MiB", "priority": -5}'
expect 200 POST /api/resources '{"name": "tiny", "request": "32MiB"}'
expect 400 POST /api/resources '{"name": "<b>", "request": 0.1}'
expect 400 POST /api/resources '{"name": "half", "request": 0.5, "limit": 0.25}'
call GET /api/state
check "compute resources are listed" "$(body 'resources.#') $(body resources.0.name) $(body resources.0.request) $(body resources.0.limit) $(body resources.0.priority)" = "2 small 0.1 300MiB -5"
expect 200 POST /api/jobs '{"command": ["sh", "-c", "echo $SEED; pwd; exit 3"], "resource": "small", "env": {"SEED": "seven"}, "dir": "/usr", "name": "from-page"}'
job=$(body job)
over() { [ "$("$B/sluice" ps --all --json | json "job=$job.state")" = failed ]; }
until_true 20 over
check "the job ran, and failed as it was told to" "$("$B/sluice" ps --all --json | json "job=$job.exit_status")" = 3
check "and how it ended, in words" "$("$B/sluice" ps --all --json | json "job=$job.ending")" = "failed: exit status 3"
check "with the resource's amounts" "$("$B/sluice" ps --all --json | json "job=$job.request") $("$B/sluice" ps --all --json | json "job=$job.priority")" = "0.1 -5"
expect 200 GET "/api/jobs/$job/log"
check "what it wrote" "$(cat "$T/body")" = "seven
/usr"
check_file "is text, whatever it is" "$T/head" '^Content-Type: text/plain'
# shellcheck disable=SC2016
expect 200 POST /api/jobs '{"command": ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); done; sleep 1; exit 3"], "resource": "tiny", "dir": "/", "name": "loud"}'
loud=$(body job)
loud_is_over() { [ "$("$B/sluice" ps --all --json | json "job=$loud.state")" = failed ]; }
until_true 20 loud_is_over
dropped() { call GET "/api/jobs/$loud/log" && grep -q '^sluice: the oldest .* of this output are dropped; 64 KiB are kept' "$T/body"; }
until_true 10 dropped
check "of much the newest, and a line in front that says so" "$(sed -n '1s/:.*//p;$p' "$T/body" | tr '\n' ' ')" = "sluice line 19999 "
expect 409 GET "/api/jobs/$job/log?task=7"
expect 404 GET /api/jobs/999/log
expect 404 POST /api/jobs/front-x/stop '{}'
expect 404 POST /api/jobs/front-/stop '{}'
expect 404 POST /api/jobs/front-999/stop '{}'
check_file "said with its number" "$T/body" 'no workload 999 waits'
"$B/sluice" submit --resource small --limit 400MiB --name by-name -- true >/dev/null
check "the command line knows it" "$? $("$B/sluice" ps --all --json | json name=by-name.request) $("$B/sluice" ps --all --json | json name=by-name.limit) $("$B/sluice" ps --all --json | json name=by-name.priority)" = "0 0.1 400MiB -5"
$RUN --resource tiny --priority 2 --name ran -- sh -c "sleep 0.2; '$B/sluice' ps --json" >"$T/ran"
check "and runs by it" "$(json name=ran.request_bytes <"$T/ran") $(json name=ran.limit_bytes <"$T/ran") $(json name=ran.priority <"$T/ran")" = "33554432 33554432 2"
$RUN --resource none -- true 2>"$T/said"
check "which there is not" $? = 64
check_file "says which there are" "$T/said" 'there are small, tiny'
expect 200 POST /api/jobs '{"command": ["sleep", "100"], "observe": true, "name": "watched"}'
watched() { call GET /api/state && [ "$(body jobs.name=watched.state)" = running ]; }
until_true 20 watched
check "a job that is only watched runs" $? = 0
check "it is one" "$(body workloads.name=watched.flags.0)" = observed
check "with nothing guaranteed, and all that there is" "$(body workloads.name=watched.uses.0.request_bytes) $(body workloads.name=watched.uses.0.limit_bytes)" = "0 $(body gpus.0.shareable_bytes)"
expect 200 POST "/api/jobs/$(body jobs.name=watched.id)/stop" '{"grace_ms": 1000}'
for other in '"request": "1MiB"' '"limit": 0.5' '"resource": "tiny"'; do
	expect 400 POST /api/jobs "{\"command\": [\"ls\"], \"observe\": true, $other}"
	check_file "and says what to leave out" "$T/body" "leave out $(printf %s "$other" | cut -d'"' -f2)"
done
expect 400 POST /api/jobs '{"command": ["ls"], "observe": "yes"}'
expect 400 POST /api/jobs '{"command": "ls"}'
expect 400 POST /api/jobs '{"command": ["ls"], "resource": "none"}'
expect 400 POST /api/jobs '{"command": ["ls"], "env": {"A=B": "x"}}'
expect 409 POST /api/jobs '{"command": ["ls"], "project": "none"}'
expect 409 POST /api/jobs '{"command": ["ls"], "name": "a\u001b[31mb"}'
expect 409 POST /api/jobs '{"command": ["ls"], "name": "a b"}'
expect 400 POST /api/jobs "{\"command\": [\"ls\"], \"name\": \"$long\"}"
expect 400 POST /api/jobs "{\"command\": [\"ls\"], \"resource\": \"$long\"}"
expect 400 POST /api/jobs '{"command": ["a\u0000b"]}'
expect 200 POST /api/jobs '{"command": ["echo", "<script>alert(1)</script>\u001b[2J"], "request": "32MiB", "name": "said"}'
call GET /api/state
check "a hostile command is shown without what moves a terminal" "$(body jobs.name=said.command)" = 'echo <script>alert(1)</script>?[2J'
expect 200 POST /api/jobs '{"command": ["sleep", "100"], "resource": "tiny", "try": true}'
check "which keeps nothing" "$(body job)" = 0
expect 200 POST /api/jobs '{"command": ["sleep", "100"], "resource": "tiny"}'
expect 200 POST "/api/jobs/$(body job)/stop" '{"grace_ms": 1000}'
root=$TOKEN
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	TOKEN=$(as_other "$B/sluice" page --json | json token)
	expect 403 POST "/api/workloads/$id/set" '{"priority": 1}'
	expect 403 POST "/api/workloads/$id/stop" '{}'
	expect 403 GET "/api/jobs/$job/log"
	expect 200 POST /api/resources '{"name": "mine", "request": 0.1}'
	call GET /api/state
	check "a user's own resource is not for all" "$(body 'resources.#')" = 2
	call GET /api/resources
	check "but listed to its user" "$(body resources.name=mine.gpus)" = 1
	expect 200 DELETE /api/resources/mine ''
	expect 404 DELETE /api/resources/tiny ''
	expect 403 POST /api/projects '{"project": "mine", "gpu": {"quota": 1}}'
	expect 403 DELETE /api/projects/lab ''
	expect 200 POST /api/jobs '{"command": ["id", "-u"], "request": "32MiB"}'
	theirs=$(body job)
	written() { call GET "/api/jobs/$theirs/log" && [ "$(cat "$T/body")" = 65534 ]; }
	until_true 20 written
	check "a job is its user's" $? = 0
	call GET /api/state
	check "who is no admin is told so" "$(body me.admin) $(body me.uid)" = "0 65534"
fi
TOKEN=$root
expect 200 DELETE /api/resources/tiny ''
expect 404 DELETE /api/resources/tiny ''
daemon_kill
daemon_start
TOKEN=$root
expect 401 GET /api/state
TOKEN=$(token)
expect 200 GET /api/state
call GET '/api/events?name=quiet&reason=CHANGED_PRIORITY'
check "what the daemon before saw is known" "$(body 'events.#')" -ge 2
for ask in 'kind=note' 'words=quiet' 'kind=note&words=changed_PRIO'; do
	call GET "/api/events?name=quiet&$ask&before=$(body events.1.serial)"
	check "and searched: $ask" "$(body 'events.#')" -ge 1
	call GET '/api/events?name=quiet&reason=CHANGED_PRIORITY'
done
call GET /api/state
check "resources are kept" "$(body 'resources.#') $(body resources.0.name)" = "1 small"

# --- rejected requests
expect 421 GET /api/state '' 'Host: evil.example'
expect 421 POST "/api/workloads/$id/park" '{}' 'Host: evil.example'
for host in evil.example localhost.evil.example "$H.evil.example" 10.0.0.1; do
	printf 'GET /api/state HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$host" | ask "$A" send >"$T/answer"
	check "a rebound name: $host" "$(head -n 1 "$T/answer" | cut -d' ' -f2)" = 421
done
for host in "$A" gpubox.example:80 '[::1]:7654'; do
	printf 'GET /api/state HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$host" | ask "$A" send >"$T/answer"
	check "ours: $host" "$(head -n 1 "$T/answer" | cut -d' ' -f2)" = 200
done
expect 403 POST "/api/workloads/$id/park" '{}' 'Origin: http://evil.example'
expect 403 POST "/api/workloads/$id/park" '{}' 'Origin: http://localhost:8888' 'Sec-Fetch-Site: same-site'
expect 403 POST "/api/workloads/$id/park" '{}' 'Sec-Fetch-Site: cross-site'
expect 403 GET /api/state '' 'Origin: null'
expect 200 GET /api/state '' 'Origin: http://localhost' 'Sec-Fetch-Site: same-origin'
printf 'POST /api/workloads/%s/park HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}' "$id" "$TOKEN" |
	ask "$A" send >"$T/answer"
check "what a form could send" "$(head -n 1 "$T/answer" | cut -d' ' -f2)" = 415
good=$TOKEN
# One that is ended ends what it stands for, and no other.
TOKEN=$(token)
"$B/tests/system/http-client" "$A" watch /api/live 20000 "Authorization: Bearer $TOKEN" >"$T/live" &
live=$!
until_true 15 streams
check "it watches" $? = 0
expect 200 DELETE /api/token '{}'
check_file "which ends" "$T/body" '"ended":true'
expect 401 GET /api/state
expect 401 DELETE /api/token '{}'
# The last chunk is empty.
streamed() { tail -n 2 "$T/live" | tr -d '\r' | grep -qx 0; }
until_true 15 streamed
check "and so does what it watched" $? = 0
kill $live
wait $live 2>/dev/null
TOKEN=$good
expect 200 GET /api/state
for TOKEN in "${good}0" "$(echo "$good" | tr 0-9a-f 1-9a-f0)" x "$good $good"; do expect 401 GET /api/state; done
TOKEN=$good
expect 405 PUT /api/state '{}'
check_file "what is allowed is said" "$T/body" 'GET'
expect 404 GET /api/nothing
expect 404 GET /api/../etc/passwd
expect 404 GET /metrics
expect 413 POST "/api/workloads/$id/park" "$(head -c 70000 /dev/zero | tr '\0' ' ')"
{
	printf 'POST /api/workloads/%s/park HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n' "$id" "$TOKEN"
	for _ in 1 2 3 4; do
		printf '8000\r\n'
		head -c 32768 /dev/zero | tr '\0' ' '
		printf '\r\n'
	done
	printf '0\r\n\r\n'
} | ask "$A" send >"$T/answer"
check "the same in chunks" "$(head -n 1 "$T/answer" | cut -d' ' -f2)" = 413
expect 431 GET /api/state '' "X: $(head -c 40000 /dev/zero | tr '\0' x)"
head -c 100000 /dev/urandom | ask "$A" send >"$T/answer"
check "noise ends" $? = 0
printf 'POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{' "$TOKEN" | ask "$A" send >"$T/answer"
check "a body that never comes ends" $? = 0
check "none of it was done" "$(use quiet residency)" = bound

kill -KILL $a $b
wait $a $b 2>/dev/null
check_books_empty 20
# With an open page, and a request under way.
: >"$T/live"
"$B/tests/system/http-client" "$A" deaf 5 60000 /api/live >/dev/null &
deaf=$!
ask "$A" watch /api/live 60000 >"$T/live" &
until_true 15 streams
begin=$(now_ms)
daemon_stop
check "the daemon ends well" $? = 0
check "and waits for nobody, milliseconds" $(($(now_ms) - begin)) -lt 30000
kill -KILL $deaf

# --- a socket, where the kernel names the user; a port that is taken; an address for others
: >"$CONFIG"
config "page: $S"
config 'socket_mode: "0666"'
daemon_start
AT=$S TOKEN=
expect 200 GET /api/state '' 'Host: whatever'
check "who asks is known" "$(body me.uid)" = "$(id -u)"
expect 404 POST /api/workloads/999/park '{}'
check "its address is its path" "$("$B/sluice" page)" = "$S"
daemon_stop
check "the socket is gone" "$([ -e "$S" ] && echo there)" = ""
refused() { timeout 15 "$B/sluiced" --config "$1" --socket "$T/s2" --state "$T/state2" >"$T/second" 2>&1; }
# For other machines: reading takes a token, too; by TLS, or without if the administrator says so.
# Below the ports that the kernel gives to connecting sockets.
port=$((20000 + $$ % 12000))
: >"$CONFIG"
config "page: \"0.0.0.0:$port\""
config 'page_open: yes'
daemon_start
AT=$H:$port TOKEN=
expect 401 GET /api/state '' "X: 1"
TOKEN=$(token)
expect 200 GET /api/state
expect 200 GET /
daemon_stop
if command -v openssl >/dev/null; then
	(umask 022 && : >"$T/key.pem")
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout "$T/key.pem" -out "$T/cert.pem" 2>"$T/said" || fail "no certificate: $(cat "$T/said")"
	: >"$CONFIG"
	config "page: \"0.0.0.0:$port\""
	config "page_certificate: $T/cert.pem"
	config "page_key: $T/key.pem"
	daemon_start
	TOKEN=$(token)
	check "the address is one of TLS" "$("$B/sluice" page | cut -d: -f1)" = https
	secure() { # HEADER
		{
			printf 'GET /api/state HTTP/1.1\r\nHost: localhost\r\n%s\r\nConnection: close\r\n\r\n' "$1"
			sleep 1
		} | timeout 10 openssl s_client -quiet -verify_quiet -CAfile "$T/cert.pem" -connect "$H:$port" 2>/dev/null | head -n 1 | cut -d' ' -f2
	}
	check "by TLS" "$(secure "Authorization: Bearer $TOKEN")" = 200
	check "by TLS without a token" "$(secure 'X: 1')" = 401
	printf 'GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n' | ask "$H:$port" send >"$T/answer"
	# As far as this openssl would go, which a policy of its own may keep from old ones.
	speaks() { echo | timeout 10 openssl s_client "$1" -cipher 'ALL:@SECLEVEL=0' -connect "$H:$port" 2>/dev/null | grep -q '^ *Cipher *: *[A-Z]'; }
	speaks -tls1_2
	check "TLS 1.2 is spoken" $? = 0
	for old in -tls1 -tls1_1; do
		speaks $old
		check "openssl s_client $old comes to nothing" $? -ne 0
	done
	check_file "others could read the key" "$T/daemon.log" 'page_key: others may read'
	check "nothing without TLS" "$(grep -c '^HTTP' "$T/answer")" = 0
	daemon_stop
	check "the daemon ends well" $? = 0
	echo nothing >"$T/cert.pem"
	refused "$CONFIG"
	check "a certificate that is none: no start" $? -ne 0
	check_file "and says why" "$T/second" 'page: .*page_certificate'
fi
"$B/tests/system/http-client" "$A" listen 30000 >"$T/other" &
other=$!
listens() { grep -q listening "$T/other"; }
until_true 5 listens || fail "nobody listens"
echo "page: \"$A\"" >"$CONFIG"
daemon_start
check "a port that is taken: the daemon runs" $? = 0
"$B/sluice" page >"$T/said" 2>&1
check "without the page" $? = 75
check_file "and says why" "$T/said" "page: cannot listen on $A: Address already in use"
kill -KILL $other
wait $other 2>/dev/null
served() { "$B/sluice" page >"$T/said" 2>&1; }
until_true 10 served
check "the page is served once it is free" $? = 0
daemon_stop
# Root's daemon at its usual place chooses the address by itself, and opens the page there in the same way.
cat >"$T/usual" <<'END'
mount -t tmpfs none /run || exit 77
unset SLUICE_SOCKET
up() { timeout 5 "$B/sluice" gpus --json >/dev/null 2>&1; }
begin() {
	"$B/sluiced" --config "$T/usual.yaml" --state "$T/usual.state" >"$T/usual.log.$1" 2>&1 &
	usual=$!
	for _ in $(seq 200); do
		up && return
		sleep 0.05
	done
}
end() {
	kill -TERM $usual
	wait $usual
	echo "$1 ended $?"
}
# A file that is there already will do, too.
"$B/tests/system/http-client" 127.0.0.1:7654 listen 60000 >"$T/usual.listener" &
listener=$!
for _ in $(seq 100); do
	! grep -q listening "$T/usual.listener" && kill -0 $listener 2>/dev/null || break
	sleep 0.05
done
begin taken
up && echo "taken runs"
"$B/sluice" page >"$T/usual.page" 2>&1
echo "taken page $?"
"$B/sluice" doctor >"$T/usual.doctor" 2>&1
end taken
kill -KILL $listener 2>/dev/null || exit 0
wait $listener 2>/dev/null
begin free
"$B/sluice" page | sed 's/#.*//; s/^/free page /'
end free
END
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
	echo "data_dir: $T/usual.data" >"$T/usual.yaml"
	export B T
	unshare --mount sh "$T/usual" >"$T/usual.out" 2>"$T/usual.err"
	check_file "with the usual port taken the daemon runs" "$T/usual.out" '^taken runs$'
	check_file "the page is refused" "$T/usual.out" '^taken page 75$'
	check_file "which says why, and what to do" "$T/usual.page" 'page: cannot listen on 127\.0\.0\.1:7654: Address already in use; choose another address'
	check_file "the daemon's log has it" "$T/usual.log.taken" 'going on without it'
	check_file "doctor has it" "$T/usual.doctor" '127\.0\.0\.1:7654: Address already in use'
	check_file "it ends well" "$T/usual.out" '^taken ended 0$'
	if grep -q '^free' "$T/usual.out"; then
		check_file "where the port is free the page is there by itself" "$T/usual.out" '^free page http://127\.0\.0\.1:7654/$'
	else
		note "skipped: somebody else has 127.0.0.1:7654"
	fi
else
	note "skipped: no right to make a namespace of mounts"
fi
echo 'page: "0.0.0.0:7654"' >"$T/wrong"
refused "$T/wrong"
check "to others without TLS: no start" $? -ne 0
check_file "and says what to do" "$T/second" 'page_certificate'
: >"$CONFIG"
daemon_start
"$B/sluice" page >"$T/said" 2>&1
check "without a page: a refusal" $? = 75
check_file "that says what to do" "$T/said" 'page: 127.0.0.1:7654'
daemon_stop
finish
