#!/bin/sh
# The bounds of the page's server: far more connections than it serves, clients that ask slowly, never read, ask far too often, or guess
# tokens. Others are served meanwhile, and the daemon's loop does not notice.
export BOX="--gpus 1 --memory 1GiB" LIMIT=200
. "$(dirname "$0")/lib.sh"
# Any address of 127.0.0.0/8 will do, so each run has one of its own.
H=127.$((64 + $$ / 62500 % 64)).$(($$ / 250 % 250)).$(($$ % 250 + 1))
A=$H:7654
ASK=$B/tests/system/http-client
ask() { "$ASK" "$@"; }
# code METHOD TARGET [HEADER...]: the status of the answer, which is in $T/answer.
code() {
	code_method=$1 code_target=$2
	shift 2
	{
		printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' "$code_method" "$code_target"
		for code_header in "$@"; do printf '%s\r\n' "$code_header"; done
		printf '\r\n'
	} | ask "$A" send >"$T/answer"
	head -n 1 "$T/answer" | cut -d' ' -f2
}
served() { [ "$(code GET /api/state)" = 200 ]; }
jiffies() { awk '{ print $14 + $15 }' "/proc/$DAEMON/stat"; }
descriptors() { find "/proc/$DAEMON/fd" -type l | wc -l; }
calm() { [ "$(descriptors)" -lt 60 ]; }
config "page: \"$A\""
config 'history: no'
daemon_start
TOKEN=$("$B/sluice" page --json | json token)
served
check "it serves" $? = 0

# --- open pages: 12 from an address without a token, the next is told so, and a user with a token has places of their
# own
"$ASK" "$A" deaf 12 60000 /api/live >/dev/null &
watchers=$!
told() {
	ask "$A" watch /api/live 500 >"$T/answer"
	head -n 1 "$T/answer" | grep -q ' 503 '
}
until_true 15 told
check "the 13th who watches without a token is refused" $? = 0
check_file "and told why" "$T/answer" '"error":"you have the page open in as many places as one may; close some"'
watches_with_token() { ask "$A" watch /api/live 2000 "Authorization: Bearer $TOKEN" | grep -q '^event: state'; }
until_true 15 watches_with_token
check "who has a token may watch meanwhile" $? = 0
served
check "and can ask all the same" $? = 0
kill -KILL $watchers
wait $watchers 2>/dev/null
watches() { ask "$A" watch /api/live 2000 | grep -q '^event: state'; }
until_true 20 watches
check "with them gone it may watch" $? = 0

# --- the 65th waits, and is served when one of those that say nothing has been shown out
"$ASK" "$A" idle 64 8000 >"$T/idle" &
idle=$!
full() { [ "$(descriptors)" -ge 64 ]; }
until_true 10 full
check "64 are connected" $? = 0
served
check "the 65th waits, and is served" $? = 0
kill -KILL $idle
wait $idle 2>/dev/null
until_true 20 calm

# --- three times as many as are served at a time
for how in trickle idle deaf watch; do
	before=$(jiffies)
	target=/api/state method=$how
	[ $how != watch ] || target=/api/live method=deaf
	"$ASK" "$A" $method 200 1500 $target >"$T/$how" &
	many=$!
	asked=0
	while ! gone $many; do
		timeout 5 "$B/sluice" ps --json >/dev/null || fail "$how: ps was not answered"
		asked=$((asked + 1))
		sleep 0.1
	done
	wait $many
	check "200 $how: the loop answers meanwhile" $asked -ge 1
	check "200 $how: the daemon's time, hundredths of seconds" $(($(jiffies) - before)) -lt 300
	until_true 20 served || fail "$how: no answer afterwards: $(head -n 1 "$T/answer")"
	until_true 20 calm || fail "$how: $(descriptors) descriptors are left"
done

# --- far more than may be, in a second
many() { # COUNT LINES...: so many requests on one connection
	many_left=$1
	shift
	while [ "$many_left" -gt 0 ]; do
		for many_line in "$@"; do printf '%s\r\n' "$many_line"; done
		printf '\r\n'
		many_left=$((many_left - 1))
	done | ask "$A" send >"$T/answer"
}
answers() { grep -ao "HTTP/1.1 $1" "$T/answer" | wc -l; }
many 300 'POST /api/workloads/999/park HTTP/1.1' 'Host: localhost' "Authorization: Bearer $TOKEN" 'Content-Length: 0'
check "who changes 300 times at once is told to wait" "$(answers 429)" -gt 0
check_file "for how long" "$T/answer" '^Retry-After: 1'
check "and some of it was heard" "$(answers 404)" -gt 0
# At once, for each costs its asker a pause; ten are free.
guessers=
i=0
while [ $i -lt 20 ]; do
	printf 'GET /api/state HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer 0123456789abcdef0123456789abcde%d\r\nConnection: close\r\n\r\n' $((i % 10)) |
		"$ASK" "$A" send >"$T/guess.$i" &
	guessers="$guessers $!"
	i=$((i + 1))
done
# shellcheck disable=SC2086 # a list of pids is meant
wait $guessers
cat "$T"/guess.* >"$T/answer"
check "who guesses tokens is told that they are wrong" "$(answers 401)" -ge 10
check "and then to wait" "$(answers 429)" -gt 0
check_file "and why" "$T/answer" 'too many tokens were wrong'
check "and got nothing" "$(answers 200)" = 0
check "who has one is served meanwhile" "$(code GET /api/state "Authorization: Bearer $TOKEN")" = 200
until_true 5 served || fail "and served later: $(head -n 1 "$T/answer")"

# --- too large
long=$(head -c 40000 /dev/zero | tr '\0' x)
check "a target of 40 kB" "$(code GET "/api/$long")" = 414
check "a query of 40 kB" "$(code GET "/api/state?$long")" = 414
check "a header of 40 kB" "$(code GET /api/state "X: $long")" = 431
check "a body that is said to have 1 TB" "$(code POST /api/jobs "Authorization: Bearer $TOKEN" 'Content-Type: application/json' 'Content-Length: 1099511627776')" = 413
check "a body that is no JSON" "$(code POST /api/jobs "Authorization: Bearer $TOKEN" 'Content-Type: text/plain' 'Content-Length: 2')" = 415
served
check "all is well afterwards" $? = 0
daemon_stop
check "the daemon ends well" $? = 0
finish
