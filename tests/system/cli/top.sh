#!/bin/sh
# sluice top on a terminal: what it shows, its keys, sizes, terminals that are not fit, and daemons
# that go away. Against the real daemon, what is shown is what `ps --json` says.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
: "${SCREEN:?names the terminal}"
TERM=xterm-256color LC_ALL=C.UTF-8
export TERM LC_ALL

# on SIZE NAME STEPS: sluice top on a terminal of that size, driven by the steps.
on() {
	rows=$((rows + 1))
	# shellcheck disable=SC2086 # two words are meant
	printf '%s\n' "$3" | timeout 100 "$SCREEN" $1 -- "$sluice" top --interval 0.25 2>"$work/screen.err" ||
		fail "$2: $(cat "$work/screen.err")"
}
# has NAME FILE PATTERN
has() {
	rows=$((rows + 1))
	grep -q -e "$3" "$2" || fail "$1: no '$3' in: $(cat "$2")"
}
# Characters, whatever awk takes for one.
narrowed() { sed 's/·/./g' "$1"; }
widest() { narrowed "$1" | awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }'; }
bars() { narrowed "$1" | grep '^\[' | awk '{ print length($0) }' | sort -u; }

fake lists 2>/dev/null
on '80 24' 'the screen' "expect q quit
expect Waiting
dump $work/at-80
keys q
exit 0"
has 'title' "$work/at-80" '^sluice top  3 GPUs  3 lines  1 waiting  by gpu  *every 250ms  ..:..:..$'
has 'a GPU' "$work/at-80" '^GPU 1 degraded  busy 97%  0B of 78GiB used, 40GiB requested  NVIDIA H100'
has 'a bar' "$work/at-80" '^\[A*a-*·*\]$'
has 'a tick' "$work/at-80" '^ *^$'
has 'legend' "$work/at-80" '^A held a hidden - unused request ^ its end · free ~ dying ? unmanaged # reserve$'
has 'list' "$work/at-80" '^  WORKLOAD         GPU STATE      REQUEST   LIMIT    USED WAITING  IDLE$'
has 'selected, with its letter' "$work/at-80" '^A>a-model-server-0   0 reserved      4GiB   12GiB 3.25GiB       -   65s$'
has 'who waits, and why' "$work/at-80" '^  srv?\[31m has waited 12.5s for 300 MiB above its request on GPU 0: 100 MiB is$'
has 'keys' "$work/at-80" '^q quit .*s sort  w why  d details  p pause  +/- interval  ? help$'
same 'every bar is as wide as the screen' "$(bars "$work/at-80")" 80
same 'no row is wider' "$(widest "$work/at-80")" 80

on '80 24' 'keys' "expect A>a-model-server-0
keys j
expect B>a-model-server-1
keys \\eOB
expect C>a-model-server-2
keys w
expect Why
expect ago: srv?[31m waited 12.5s for 300 MiB
keys \\eOA
expect B>a-model-server-1
expect Nothing is in the way of a-model-server-1
keys d
expect Details
expect user root  process
expect process 201  untakeable (stopped)
keys ?
expect Help
keys \\e
gone Help
expect Waiting
keys s
expect by name
keys ssss
expect by idle
expect B>a-model-server-1
keys p
expect PAUSED
keys p
gone PAUSED
keys -
expect every 500ms
keys +
expect every 250ms
keys z
keys q
exit 0"
on '80 24' 'sizes' "expect A>a-model-server-0
size 40 24
expect q quit  s sort  w why  d details  ? help
gone WAITING
size 40 12
gone ^
expect A>a-model
size 15 5
expect too small
size 132 43
expect +/- interval
dump $work/at-132
size 40 24
gone +/- interval
expect q quit
dump $work/at-40
signal 15
exit 0"
same 'as wide as it gets' "$(bars "$work/at-132")" 132
same 'as narrow as it gets' "$(widest "$work/at-40")" 40
has 'narrow: name, GPU, state, used' "$work/at-40" '^A>a-.*  0 reserved .* 3.25GiB$'

# --- jobs in the queue
fake jobs 2>/dev/null
on '80 24' 'the queue' "expect 1 job in the queue
dump $work/queue
keys q
exit 0"
has 'the queue: in the title' "$work/queue" ' 1 queued  by gpu'
has 'the queue: who waits, and for what' "$work/queue" '^    train (research): project research has its 2 GPUs?\[31m$'

# --- states that want attention, at both sizes
fake states 2>/dev/null
for size in '80 24' '100 40'; do
	on "$size" "states at $size" "expect untakeable
dump $work/states
keys q
exit 0"
	has "a lost GPU at $size" "$work/states" '^GPU 2 lost  busy '
	has "over its limit at $size" "$work/states" '^B a-model-server-1  *1 over limit '
	has "untakeable at $size" "$work/states" '^C .* untakeable '
	has "stopping at $size" "$work/states" '^D .* stopping '
	same "states: no row is wider than $size" "$(widest "$work/states")" "${size% *}"
done

# --- terminals of other kinds
fake lists 2>/dev/null
for kind in vt100 linux; do
	TERM=$kind on '80 24' "TERM=$kind" "expect A>a-model-server-0
keys q
exit 0"
done
LC_ALL=C on '80 24' 'ASCII' "expect A>a-model-server-0
dump $work/ascii
keys q
exit 0"
same 'ASCII only' "$(LC_ALL=C tr -dc '\200-\377' <"$work/ascii" | wc -c)" 0
has 'ASCII: a bar' "$work/ascii" '^\[A*a-*\.*\]$'
for kind in dumb nonsense ''; do
	printf 'expect TERM\nexit 64\n' | TERM=$kind timeout 60 "$SCREEN" 80 24 -- "$sluice" top 2>"$work/screen.err" ||
		fail "TERM='$kind': $(cat "$work/screen.err")"
done
expect 'no terminal' 64 "no terminal; use 'sluice ps --watch'" "$sluice" top
expect 'no such interval' 64 'not within 250ms to 64s$' "$sluice" top --interval 0.1
expect 'no daemon' 69 'no daemon answers' env SLUICE_SOCKET="$work/none.sock" "$sluice" top

# --- a daemon that goes away
SLUICE_SOCKET=$work/again.sock
export SLUICE_SOCKET
"$FAKE_DAEMON" "$SLUICE_SOCKET" lists 2>/dev/null &
daemon=$!
wait_for "$SLUICE_SOCKET"
(
	wait_for "$work/seen"
	kill $daemon
	rm -f "$SLUICE_SOCKET"
	wait_for "$work/gone"
	"$FAKE_DAEMON" "$SLUICE_SOCKET" lists 2>/dev/null &
	echo $! >"$work/second"
	wait
) &
helper=$!
on '80 24' 'a daemon that goes away' "expect 3 GPUs
dump $work/seen
expect waiting for the daemon
expect A>a-model-server-0
dump $work/gone
gone waiting for the daemon
expect 3 GPUs
keys q
exit 0"
kill "$(cat "$work/second")"
wait $helper 2>/dev/null

# --- the real daemon: what is shown is what `ps --json` says
unset SLUICE_SOCKET SLUICE_STATE
holder=$SLUICE_BUILD/tests/programs/holder
if [ -z "$is_sanitized" ] && [ -x "$holder" ]; then
	cat >"$work/steps" <<STEPS
expect busy
expect one
expect two
expect 2 lines  1 waiting  by gpu
dump $work/real
keys q
exit 0
STEPS
	# A third, on the other GPU, does not listen to SIGTERM; then that GPU falls off the bus.
	cat >"$work/steps-stopping" <<STEPS
expect stopping
expect 3 lines  1 waiting
dump $work/real-stopping
keys q
exit 0
STEPS
	cat >"$work/steps-lost" <<STEPS
expect GPU 1 lost
keys jjw
expect which is lost
dump $work/real-lost
keys q
exit 0
STEPS
	expect 'the real daemon' 0 '' timeout -k 5 90 "$sluice" softgpu --gpus 2 --memory 1GiB -- sh -c '
		CUDA_VISIBLE_DEVICES=0
		export CUDA_VISIBLE_DEVICES
		echo "resolvers: wait" >"$0/conf"
		sluiced --config "$0/conf" 2>"$0/daemon.log" & daemon=$!
		tries=0
		until sluice gpus >/dev/null 2>&1; do
			tries=$((tries + 1)); [ $tries -gt 200 ] && { cat "$0/daemon.log" >&2; exit 99; }
			sleep 0.05
		done
		sluice run --request 100MiB --limit 0.9 --name one -- "$1" --bytes 600MiB --ms 60000 >"$0/one" & one=$!
		until grep -q held "$0/one"; do sleep 0.05; done
		sluice run --request 100MiB --limit 0.9 --name two -- "$1" --bytes 500MiB --ms 60000 >"$0/two" & two=$!
		until sluice ps | grep -q "two .* waiting"; do sleep 0.05; done
		"$2" 80 24 -- sluice top <"$0/steps" || exit 98
		sluice ps --json >"$0/ps.json"
		sluice gpus --json >"$0/gpus.json"
		sluice why two >"$0/why"
		CUDA_VISIBLE_DEVICES=1
		sluice run --request 0 --limit 0.9 --name three -- "$3" --bytes 100MiB --term ignore --ms 60000 >"$0/three" & three=$!
		until grep -q held "$0/three"; do sleep 0.05; done
		sluice stop three --grace 1h >"$0/stop"
		"$2" 100 40 -- sluice top <"$0/steps-stopping" || exit 97
		sluice softgpu --lose 1
		"$2" 80 24 -- sluice top <"$0/steps-lost" || exit 96
		kill -KILL $one $two $three
		kill $daemon
		wait' "$work" "$holder" "$SCREEN" "$SLUICE_BUILD/tests/programs/tenant"
	has 'real: stopping' "$work/real-stopping" '^[A-Z][> ]three  *1 stopping '
	same 'real: bars at 100' "$(bars "$work/real-stopping")" 100
	has 'real: lost' "$work/real-lost" '^[A-Z]>three  *1 stopping '
	has 'real: why it is lost' "$work/real-lost" '^  three has [0-9]* MiB on GPU 1, which is lost\.$'
	# 600 of 1024 MiB, the 100 MiB that the other requested, and the reserve, which pays for their contexts.
	has 'real: a bar with a request that ended' "$work/real" '^\[A\{46\}-\{7\}·\{20\}#\{5\}\]$'
	has 'real: the reason' "$work/real" '^  two has waited .* for 500 MiB above its request on GPU 0'
	has 'real: why says the same' "$work/why" '^two has waited .* for 500 MiB above its request on GPU 0'
	if command -v python3 >/dev/null; then
		python3 - "$work" >"$work/compared" <<'PY'
import json, re, sys
work = sys.argv[1]
screen = open(work + '/real').read().splitlines()
gpu = json.load(open(work + '/gpus.json'))[0]
def short(n):
    for unit in ('B', 'KiB', 'MiB', 'GiB'):
        if n < 999.5 or unit == 'GiB':
            break
        n /= 1024
    return '%.*g' % (2 if n < 1 else 3, n) + unit
for use in json.load(open(work + '/ps.json')):
    line = [l for l in screen if re.match('[A-Z][> ]%s ' % use['name'], l)][0][2:].split()
    want = [use['state'], short(use['request_bytes']), short(use['limit_bytes']),
            short(use['backing_bytes'] + use['hidden_bytes']),
            short(use['waiting_bytes']) if use['waiting'] else '-']
    print(use['name'], 'ok' if line[2:7] == want else 'shows %s, ps says %s' % (line[2:7], want))
bar = [l for l in screen if l.startswith('[')][0][1:-1]
own = [u for u in json.load(open(work + '/ps.json')) if u['name'] == 'one'][0]
want = own['backing_bytes'] * len(bar) / gpu['capacity_bytes']
letter = [l for l in screen if re.match('[A-Z][> ]one ', l)][0][0]
cells = bar.count(letter)
print('bar', 'ok' if len(bar) == 78 and abs(cells - want) <= 1 else '%d cells, wanted %f' % (cells, want))
PY
		same 'real: top shows what ps says' "$(cat "$work/compared")" 'one ok
two ok
bar ok'
	fi
fi
finish
