#!/bin/sh
# set, why, events, stop, dump and ps --clients with the real daemon and real processes on a software
# GPU. What is decided is tested elsewhere; here it is said, changed and ended by these verbs.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
unset SLUICE_SOCKET SLUICE_STATE
holder=$SLUICE_BUILD/tests/programs/holder
[ -z "$is_sanitized" ] || skip 'the library of a sanitized build cannot be loaded into a program'

cat >"$work/inside" <<'INSIDE'
work=$1 holder=$2
say() { # FILE CMD...: output, errors and status
	file=$work/$1
	shift
	"$@" >"$file" 2>&1
	echo "status $?" >>"$file"
}
as() { # USER CMD...
	user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}
until_true() {
	tries=0
	until eval "$1"; do
		tries=$((tries + 1))
		[ $tries -gt 400 ] && { echo "never: $1"; sluice ps; sluice events | tail; cat "$work/daemon.log"; exit 97; }
		sleep 0.05
	done
}
# Where other users reach it.
chmod 711 "$work"
SLUICE_SOCKET=$work/sluiced.sock
export SLUICE_SOCKET
# The story is about waiting; swapping has one of its own (swap.sh).
echo 'resolvers: wait' >"$work/conf"
start_daemon() {
	sluiced --config "$work/conf" --state "$work/state" 2>>"$work/daemon.log" & daemon=$!
	until_true 'sluice gpus >/dev/null 2>&1'
}
start_daemon
sluice events -f >"$work/follow" 2>"$work/follow.err" & follower=$!
sluice events -f --json >"$work/follow.json" 2>/dev/null & json_follower=$!
sluice run --request 100MiB --limit 0.9 --name one -- "$holder" --bytes 600MiB --ms 90000 >"$work/one" & one=$!
until_true 'grep -q held "$work/one"'
sluice run --request 100MiB --limit 0.9 --name two -- "$holder" --bytes 500MiB --ms 90000 >"$work/two" & two=$!
until_true 'sluice ps | grep -q "two .* waiting"'
until_true 'sluice why two | grep -q "waited [1-9][0-9.]*s"'
say why-one sluice why one
say why-two sluice why two
say why-two-json sluice why two --json
say why-tow sluice why tow
say set-none sluice set one --request 0.99
say set-lower sluice set one --limit 300MiB --priority -3
say ps-over sluice ps
say set-swap sluice set one --swap off
say set-oom sluice set one --oom-first on
say ps-json sluice ps --json
say clients sluice ps --clients
say clients-json sluice ps --clients --json
say dump sluice dump
if [ "$(id -u)" = 0 ] && as 65534 sluice version >/dev/null 2>&1; then
	touch "$work/others"
	say set-denied as 65534 sluice set one --priority 5
	say stop-denied as 65534 sluice stop one
	as 65534 sluice run --request 1MiB --limit 10MiB --name two -- sleep 90 &
	until_true '[ "$(sluice ps | grep -c "[ /]two ")" = 2 ]'
	say set-own as 65534 sluice set two --priority 7
	say why-several as 1234 sluice why two
	say set-several as 1234 sluice set two --priority 7
	say stop-several as 1234 sluice stop two
	say events-of-one sluice events --name nobody/two --json
	say events-of-one-last sluice events --name nobody/two --last 1
	say names-offered sluice help --complete -- stop ''
	say stop-id sluice stop 3 --now
	until_true '[ "$(sluice ps | grep -c "[ /]two ")" = 1 ]'
fi
say run-json sluice run --json --name "$(printf 'bid\377')" -- true
say stop sluice stop one --grace 20s
wait $one
echo "status $?" >"$work/one-ended"
until_true 'grep -q held "$work/two"'
say why-ended sluice why one
say events sluice events
say events-one sluice events --name one --json
say events-last sluice events --last 1
kill -KILL $daemon
wait $daemon 2>/dev/null
until_true 'grep -q "went away" "$work/follow.err"'
start_daemon
until_true 'grep -q "connected again" "$work/follow.err"'
sluice run --name three -- true
sluice run --name three -- true
until_true '[ "$(grep -c "three ended" "$work/follow")" = 2 ]'
say why-three sluice why three
say why-three-json sluice why three --json
say stop-now sluice stop two --now
wait $two
echo "status $?" >"$work/two-ended"
kill -TERM $follower
wait $follower
echo "status $?" >>"$work/follow.err"
kill $json_follower $daemon
wait
INSIDE
expect 'the story' 0 '' timeout -k 5 100 "$sluice" softgpu --gpus 1 --memory 1GiB -- \
	sh "$work/inside" "$work" "$holder"

# said NAME FILE PATTERN...: the file has lines like these.
said() {
	name=$1 file=$work/$2
	shift 2
	for pattern; do
		rows=$((rows + 1))
		grep -q -e "$pattern" "$file" || fail "$name: no '$pattern' in: $(cat "$file")"
	done
}
said 'nothing is in its way' why-one \
	'^one runs on GPU 0: 6.. MiB of request 100 MiB, limit .*; nothing is in its way\.$' '^status 0'
said 'what it waits for' why-two \
	'^two has waited .* for 500 MiB above its request on GPU 0: .* is free for it, and one has 5.. MiB above its request\.$'
said 'as JSON' why-two-json '"reason": "BURST_WAITS"' '"bytes": 524288000' '"other_name": "one"' '"in_its_way": true'
said 'nearly a name' why-tow "no workload 'tow'; did you mean 'two'?" '^status 75'
said 'a request too large' set-none '^sluice set: refused: ' '^status 75'
said 'a limit below what it holds' set-lower '^one: request 100 MiB, limit 300 MiB, priority -3$' \
	'^It holds 3.. MiB above its limit\.' '^status 0'
said 'ps: over its limit' ps-over '^ *[0-9][0-9]* *one .* -3  *over limit .* 300MiB '
said 'no swap' set-swap '^one: .*, no swap$'
said 'what is not named stays' set-oom '^one: .*priority -3, no swap, out-of-memory first$'
said 'ps: as JSON' ps-json '"swap": false' '"oom_first": true' '"over_limit": true'
said 'processes' clients '^one  *[0-9]*  *0  *running .* 600MiB ' '^two  *[0-9]*  *0  *waiting .* 500MiB '
said 'processes, as JSON' clients-json '"waiting_bytes": 524288000' '"waits": true'
said 'dump' dump '"gpus"' '"one"' '^status 0'
if [ -e "$work/others" ]; then
	said 'of another user' set-denied 'belongs to user 0' '^status 77'
	said 'of another user' stop-denied 'belongs to user 0' '^status 77'
	said "one's own" set-own '^two: request 1 MiB, limit 10 MiB, priority 7$' '^status 0'
	said 'names of several users are offered with the user' names-offered '^two$' '^nobody/two$'
	said 'stop: by id' stop-id '^two: SIGTERM to 1 process, and SIGKILL at once$'
	for verb in why set stop; do
		said "$verb: of several users" $verb-several \
			"several users have a workload 'two'; write USER/NAME or the ID: root/two (2), nobody/two (3)$" '^status 75'
	done
	same 'events of one user: the last' "$(wc -l <"$work/events-of-one-last")" 2
	said 'events of one user' events-of-one '"uid": 65534.*"name": "two"' '^status 0'
	same 'events of one user: none of others' "$(grep '"name": "two"' "$work/events-of-one" | grep -vc '"uid": 65534')" 0
fi
said 'run: a name that is no UTF-8, as JSON' run-json '^{"ok": true, .*"name": "bid.*"visible_devices": "0"}$'
said 'stop' stop '^one: SIGTERM to [12] process\(es\)\{0,1\}, and SIGKILL after 20s$' '^status 0'
said 'stop: it is gone' one-ended '^status 143$'
said 'why, when it has ended' why-ended '^one has ended\.$' 'ago  one was stopped because user [0-9]* asked for it\.$'
said 'why: of two that had the name' why-three '^three has ended\.$'
same 'why: of the last of them' "$(grep -c 'three ended' "$work/why-three")" 1
said 'why: ended, as JSON' why-three-json '"name": "three"' '"workload": [1-9]' '"ended": true'
said 'events' events 'note    one started$' 'note    one was changed by user [0-9]*: request 100 MiB, limit 300 MiB$' \
	'stop    one was stopped because user [0-9]* asked for it$' 'note    two got 500 MiB on GPU 0 after '
said 'events of one' events-one '"reason": "STARTED".*"name": "one"' '"reason": "CHANGED"'
same 'events of one: none of others alone' "$(grep '^{' "$work/events-one" | grep -cv '"one"')" 0
same 'the last event' "$(wc -l <"$work/events-last")" 2
said 'followed: both daemons' follow 'one started$' 'three ended' 'the daemon started$'
same 'followed: nothing twice' "$(grep -c 'one started$' "$work/follow")" 1
said 'followed: ends well' follow.err '^status 0$'
said 'stop: at once' stop-now '^two: SIGTERM to [12] process.*, and SIGKILL at once$' '^status 0'
said 'stop: it is gone at once' two-ended '^status 1\(37\|43\)$'
if command -v python3 >/dev/null; then
	same 'followed: each line is JSON' "$(python3 -c "
import json
rows = [json.loads(line) for line in open('$work/follow.json')]
print(len(set(r['daemon_epoch'] for r in rows)), all(r['sentence'] and r['kind'] for r in rows))" 2>&1)" '2 True'
	same 'dump: JSON' "$(sed '/^status/d' "$work/dump" | python3 -c 'import json, sys; print(type(json.load(sys.stdin)).__name__)')" dict
fi
finish
