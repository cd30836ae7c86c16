#!/bin/sh
# Metrics over TCP and over a socket: they agree with `ps` and `gpus`, Prometheus' own checker finds nothing,
# and a client that asks badly, slowly, or much, gets nothing and stalls no other.
export BOX="--gpus 2 --memory 1GiB" LIMIT=200
. "$(dirname "$0")/lib.sh"
software_only "two GPUs"
# Any address of 127.0.0.0/8 will do, so each run has one of its own.
A=127.$((64 + $$ / 62500 % 64)).$(($$ / 250 % 250)).$(($$ % 250 + 1)):9464
S=$T/metrics.sock
ask() { "$B/tests/system/http-client" "$@"; }
fetch() { ask "$1" get /metrics >"$T/m"; }
# metric SAMPLE: its value in the last answer.
metric() { grep -v '^#' "$T/m" | grep -F "$1 " | sed 's/.* //'; }
promtool=$("$(dirname "$0")/../../tools/promtool" "$B" 2>"$T/why") || promtool=
checked() {
	if [ -z "$promtool" ]; then
		note "skipped: $1: $(cat "$T/why")"
		return
	fi
	"$promtool" check metrics <"$T/m" >"$T/promtool" 2>&1
	check "$1: promtool has nothing to say ($(wc -l <"$T/m") lines)" "$?-$(cat "$T/promtool")" = "0-"
}

config 'resolvers: wait'
config "metrics: \"$A\""
config 'measure_interval: 100ms'
daemon_start
# Two for each of 4,096 clients and more; a table that grew later would hold the loop meanwhile.
most=$(awk '/^Max open files/ { print $5 }' /proc/self/limits)
[ "$most" != unlimited ] && [ "$most" -lt 8192 ] || most=8192
check "room for all descriptors is there from the start" "$(sed -n 's/^FDSize:[^0-9]*//p' "/proc/$DAEMON/status")" -ge "$most"
nasty='q"u\o}te={x='
$RUN --request 100MiB --limit 900MiB --name "$nasty" -- "$P/holder" --bytes 600MiB --ms 60000 >"$T/a" &
a=$!
wait_event "$T/a" held
# No second GPU would take it, were it not told two.
$RUN --request 0 --limit 0.95 --gpus 2 --priority -3 --name waiter -- "$P/holder" --bytes 850MiB --ms 0 >"$T/b" &
b=$!
one_waits() { [ "$(use waiter waiting_bytes)" -gt 0 ]; }
until_true 40 one_waits || fail "nobody waits: $(tail -n 3 "$T/b")"
# What is hidden is measured, and may be so between two of the three questions.
quiet() {
	"$B/sluice" gpus --json >"$T/gpus" && "$B/sluice" ps --json >"$T/ps" && fetch "$1" || return 1
	for g in 0 1; do
		for kind in hidden unmanaged free; do
			[ "$(metric 'sluice_gpu_memory_bytes{gpu="'"$(json $g.uuid <"$T/gpus")"'",kind="'$kind'"}')" = "$(json $g.${kind}_bytes <"$T/gpus")" ] || return 1
		done
	done
	for row in $(seq 0 $(($(json '#' <"$T/ps") - 1))); do
		[ "$(of_workload $row hidden)" = "$(json $row.hidden_bytes <"$T/ps")" ] || return 1
	done
}
# of_workload ROW KIND: of its memory, by the metrics.
of_workload() {
	grep "^sluice_workload_memory_bytes{id=\"$(json $1.workload <"$T/ps")\",.*gpu=\"$(json $1.gpu_uuid <"$T/ps")\",kind=\"$2\"} " "$T/m" | sed 's/.* //'
}
agrees() { # WAY ADDRESS
	until_true 20 quiet "$2" || fail "$1: no answer that agrees"
	for g in 0 1; do
		uuid=$(json $g.uuid <"$T/gpus")
		sum=0
		for kind in backing granted hidden dying free unmanaged reserve; do
			value=$(metric "sluice_gpu_memory_bytes{gpu=\"$uuid\",kind=\"$kind\"}")
			check "$1: GPU $g $kind" "$value" = "$(json "$g.${kind}_bytes" <"$T/gpus")"
			sum=$((sum + value))
		done
		check "$1: GPU $g adds up" $sum = "$(json $g.capacity_bytes <"$T/gpus")"
		for name in capacity shareable requests; do
			check "$1: GPU $g $name" "$(metric "sluice_gpu_${name}_bytes{gpu=\"$uuid\"}")" = "$(json "$g.${name}_bytes" <"$T/gpus")"
		done
	done
	for row in $(seq 0 $(($(json '#' <"$T/ps") - 1))); do
		id=$(json $row.workload <"$T/ps") uuid=$(json $row.gpu_uuid <"$T/ps")
		for kind in backing hidden dying; do
			check "$1: workload $id $kind" "$(of_workload $row $kind)" = "$(json "$row.${kind}_bytes" <"$T/ps")"
		done
		for name in request limit waiting; do
			check "$1: workload $id $name" "$(grep "^sluice_workload_${name}_bytes{id=\"$id\",.*gpu=\"$uuid\"} " "$T/m" | sed 's/.* //')" = "$(json "$row.${name}_bytes" <"$T/ps")"
		done
		check "$1: workload $id priority" "$(grep "^sluice_workload_priority{id=\"$id\"," "$T/m" | sed 's/.* //')" = "$(json $row.priority <"$T/ps")"
	done
	check "$1: workloads" "$(metric sluice_workloads)" = 2
	check "$1: two clients" "$(metric sluice_clients)" = 2
	check_file "$1: a hostile name is escaped" "$T/m" 'workload="q\\"u\\\\o}te={x=",project="default"'
	checked "$1"
}
agrees tcp "$A"
check "grants are counted" "$(metric sluice_grants_total)" -ge 1
check "the driver's version is told" "$(grep -c '^sluice_driver_info{version="[0-9]' "$T/m")" = 1
# A denial, a refusal and their reasons.
$RUN --request 0 --limit 0.95 --longest-wait 100ms --gpus 2 --name hasty -- "$P/holder" --bytes 850MiB --ms 0 >/dev/null 2>&1
$RUN --request 2GiB -- true >/dev/null 2>&1
counted() { fetch "$A" && [ "$(metric 'sluice_denials_total{reason="WAITED_TOO_LONG"}')" -ge 1 ] && [ "$(metric 'sluice_refusals_total{reason="REQUEST_TOO_LARGE"}')" = 1 ]; }
until_true 5 counted || fail "neither counted: $(grep -E '^sluice_(denials|refusals).* [1-9]' "$T/m")"
check "a denial is an event" "$(metric 'sluice_events_total{reason="WAITED_TOO_LONG"}')" = "$(metric 'sluice_denials_total{reason="WAITED_TOO_LONG"}')"

# What is no GET of /metrics.
answer() { # WHAT STATUS: standard input is sent
	ask "$A" send >"$T/answer"
	check "$1: answered" $? = 0
	check "$1: $2" "$(head -c 12 "$T/answer" | cut -d' ' -f2)" = "$2"
}
request() { printf '%s HTTP/1.1\r\nHost: %s\r\n\r\n' "$1" "${2-localhost}"; }
request 'HEAD /metrics' | answer HEAD 200
check "HEAD has no body" "$(tail -c 4 "$T/answer" | od -An -tx1 | tr -d ' ')" = 0d0a0d0a
request 'GET /metrics' "$A" | answer "our own address" 200
check_file "the type is told" "$T/answer" '^Content-Type: text/plain; version=0.0.4'
request 'GET /' | answer "another path" 404
request 'GET /metrics/../../etc/passwd' | answer "a path upwards" 404
request 'POST /metrics' | answer POST 405
check_file "what is allowed is told" "$T/answer" '^Allow: GET, HEAD'
request 'DELETE /metrics' | answer DELETE 405
request 'BREW /metrics' | answer "an unknown method" 405
request 'GET /metrics' evil.example | answer "a foreign host" 403
request 'GET /metrics' localhost.evil.example:9464 | answer "a foreign host that begins well" 403
printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n' | answer "two hosts" 403
printf 'GET /metrics HTTP/1.1\r\n\r\n' | answer "no host" 400
{
	printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: '
	head -c 1000000 /dev/zero | tr '\0' x
	printf '\r\n\r\n'
} | answer "a header of 1 MB" 431
{
	printf 'GET /'
	head -c 1000000 /dev/zero | tr '\0' x
	printf ' HTTP/1.1\r\nHost: localhost\r\n\r\n'
} | ask "$A" send >"$T/answer"
check "a path of 1 MB ends" $? = 0
check "and gives nothing" "$(grep -c '^sluice_' "$T/answer")" = 0
head -c 100000 /dev/urandom | ask "$A" send >"$T/answer"
check "noise ends" $? = 0
check "noise gives nothing" "$(grep -ac '^sluice_' "$T/answer")" = 0
printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx' | ask "$A" send >"$T/answer"
check "a body that never comes ends" $? = 0

# A client that sends or reads slowly, or holds all places, keeps the loop from nothing, and is
# ended.
jiffies() { awk '{ print $14 + $15 }' "/proc/$DAEMON/stat"; }
for how in trickle idle deaf; do
	before=$(jiffies)
	"$B/tests/system/http-client" "$A" $how 40 6000 >"$T/$how" &
	many=$!
	asked=0
	# `ps` goes through the same loop.
	while ! gone $many; do
		timeout 5 "$B/sluice" ps --json >/dev/null || fail "$how: ps was not answered"
		asked=$((asked + 1))
		sleep 0.1
	done
	wait $many
	check "40 $how: the loop answers meanwhile" $asked -ge 1
	check "40 $how: places are taken from who has them long" "$(cat "$T/$how")" -ge 4
	check "40 $how: the daemon rests meanwhile" $(($(jiffies) - before)) -lt 200
	until_true 20 fetch "$A" || fail "$how: no answer afterwards"
	check "$how: descriptors come back" "$(find "/proc/$DAEMON/fd" -type l | wc -l)" -lt 60
done
# It ends as soon as the place is taken away.
ask "$A" idle 1 30000 >"$T/idle"
check "nobody stays longer than 10 s" "$(cat "$T/idle")" = 1

kill -KILL $a
wait $a 2>/dev/null
wait $b
check "the waiter was served" $? = 0
check_books_empty
none_left() { fetch "$A" && ! grep -q '^sluice_workload_' "$T/m"; }
until_true 5 none_left
check "ended workloads leave no samples" "$(grep -c '^sluice_workload_' "$T/m")" = 0
checked "idle"

daemon_stop
check "the daemon ends well" $? = 0

# A port that is taken costs the metrics alone, and only until it is free; what is no address prevents the start.
refused() { timeout 60 "$B/sluiced" --config "$1" --socket "$T/s2" --state "$T/state2" >"$T/second" 2>&1; }
listens() { grep -q listening "$T/other"; }
"$B/tests/system/http-client" "$A" listen 30000 >"$T/other" &
other=$!
until_true 5 listens || fail "nobody listens"
daemon_start
check "a port that is taken: the daemon runs" $? = 0
"$B/sluice" doctor >"$T/doctor"
check_file "doctor says which" "$T/doctor" "metrics: cannot listen on $A: Address already in use"
kill -KILL $other
wait $other 2>/dev/null
served() { fetch "$A"; }
until_true 10 served
check "metrics are served once it is free" $? = 0
"$B/sluice" doctor >"$T/doctor"
check_file "doctor says where" "$T/doctor" "metrics  *served at $A"
daemon_stop
for wrong in '*:9464' 9464 127.0.0.1 example.com:80; do
	echo "metrics: \"$wrong\"" >"$T/wrong"
	refused "$T/wrong"
	check "$wrong: no start" $? = 2
	check_file "$wrong: and says why" "$T/second" 'metrics'
done

# The same at a path: a stale socket is replaced, one that answers is not, and permissions hold.
: >"$CONFIG"
config "metrics: $S"
config 'measure_interval: 100ms'
config 'socket_mode: "0600"'
daemon_start
check "the socket's mode" "$(stat -c %a "$S")" = 600
daemon_kill
check "a killed daemon leaves it" "$(stat -c %F "$S")" = socket
daemon_start
fetch "$S"
check "the next one replaces it" $? = 0
$RUN --request 100MiB --limit 900MiB --name "$nasty" -- "$P/holder" --bytes 600MiB --ms 60000 >"$T/a" &
a=$!
wait_event "$T/a" held
$RUN --request 0 --limit 0.95 --gpus 2 --priority -3 --name waiter -- "$P/holder" --bytes 850MiB --ms 0 >"$T/b" &
b=$!
until_true 40 one_waits || fail "nobody waits: $(tail -n 3 "$T/b")"
agrees path "$S"
kill -KILL $a $b 2>/dev/null
wait $a $b 2>/dev/null
daemon_stop
check "the socket is gone" "$([ -e "$S" ] && echo there)" = ""
: >"$T/other"
"$B/tests/system/http-client" "$S" listen 30000 >"$T/other" &
other=$!
until_true 5 listens || fail "nobody listens"
not_served() { # WHAT WHY
	daemon_start
	check "$1: the daemon runs" $? = 0
	"$B/sluice" doctor >"$T/doctor"
	check_file "$1: doctor says why" "$T/doctor" "$2"
	daemon_stop
}
not_served "a path where another program listens" "metrics: another program listens on $S"
check "and it keeps the path" "$([ -S "$S" ] && echo there)" = there
kill -KILL $other
wait $other 2>/dev/null
rm -f "$S"
echo precious >"$S"
not_served "a file at the path" "metrics: $S exists and is not a socket"
check "and it is left alone" "$(cat "$S")" = precious
# Off by default: nothing but its own socket is listened on.
: >"$CONFIG"
daemon_start
check "without the option there is nothing" "$(ask "$A" get /metrics >/dev/null; echo $?)" = 2
daemon_stop
finish
