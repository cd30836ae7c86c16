#!/bin/sh
# park, resume, --warm-after, and what ps, gpus, why, events, top and doctor say of memory on the host, with
# the real daemon and real processes on a software GPU.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
unset SLUICE_SOCKET SLUICE_STATE
: "${SCREEN:?names the terminal}"
holder=$SLUICE_BUILD/tests/programs/holder swapper=$SLUICE_BUILD/tests/programs/swapper
[ -z "$is_sanitized" ] || skip 'the library of a sanitized build cannot be loaded into a program'

cat >"$work/inside" <<'INSIDE'
work=$1 holder=$2 swapper=$3 screen=$4
say() { # FILE CMD...: output, errors and status
	file=$work/$1
	shift
	"$@" >"$file" 2>&1
	echo "status $?" >>"$file"
}
until_true() {
	tries=0
	until eval "$1"; do
		tries=$((tries + 1))
		[ $tries -gt 400 ] && { echo "never: $1"; sluice ps; sluice events | tail; cat "$work/daemon.log"; exit 97; }
		sleep 0.05
	done
}
chmod 711 "$work"
SLUICE_SOCKET=$work/sluiced.sock
export SLUICE_SOCKET
start_daemon() {
	printf '%s\n' "$@" >"$work/conf"
	sluiced --config "$work/conf" --state "$work/state" 2>>"$work/daemon.log" & daemon=$!
	until_true 'sluice gpus >/dev/null 2>&1'
}
# "command name" and its answer's value, of a program that does what it is told.
tell() {
	lines=$(wc -l <"$work/$1")
	echo "$2" >"$work/$1.in"
	until_true "[ \$(wc -l <'$work/$1') -gt $lines ]"
}
start_swapper() { # NAME OPTIONS
	name=$1
	shift
	mkfifo "$work/$name.in"
	sluice run --name $name "$@" -- "$swapper" <>"$work/$name.in" >"$work/$name" &
	until_true "grep -q start '$work/$name'"
}
start_daemon 'host_memory: 1GiB'
start_swapper one --request 200MiB --limit 0.9
tell one 'alloc a 300m'
tell one 'fill a 5'
say park sluice park one
say park-again sluice park one
say ps sluice ps
say ps-json sluice ps --json
say gpus sluice gpus
say gpus-json sluice gpus --json
say why sluice why one
say doctor sluice doctor
printf 'expect EVICTED\ndump %s\nkeys q\nexit 0\n' "$work/screen" |
	TERM=xterm-256color LC_ALL=C.UTF-8 "$screen" 80 24 -- sluice top >"$work/screen.said" 2>&1
if [ "$(id -u)" = 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups sluice version >/dev/null 2>&1; then
	touch "$work/others"
	say resume-denied setpriv --reuid 65534 --regid 65534 --clear-groups sluice resume one
fi
# It wants to run, and may not.
echo '& check a' >"$work/one.in"
until_true 'sluice why one | grep -q "wants to run"'
say why-wants sluice why one
say why-wants-json sluice why one --json
say resume sluice resume one
until_true 'grep -q async "$work/one"'
say resume-again sluice resume one
say ps-back sluice ps
say park-json sluice park one --json
say resume-json sluice resume one --json
say park-no-wait sluice park one --no-wait
until_true 'sluice ps | grep -q " one .* parked .* 30.MiB "'
say resume-by-id sluice resume 1
tell one 'check a'

say set sluice set one --warm-after 300ms
until_true 'sluice ps | grep -q " one .* warm .* 30.MiB "'
say why-warm sluice why one
tell one 'check a'
say set-never sluice set one --warm-after 0
start_swapper two --request 0 --limit 0.5 --warm-after 200ms
tell two 'alloc b 50m'
until_true 'sluice ps | grep -q " two .* warm .* 5.MiB "'
say events sluice events
echo exit >"$work/two.in"

sluice run --name off --swap=off --request 0 --limit 0.5 -- "$holder" --bytes 50MiB --ms 90000 >"$work/off" & off=$!
until_true 'grep -q held "$work/off"'
say park-off sluice park off
kill $off
echo exit >"$work/one.in"
until_true '[ "$(sluice ps | wc -l)" = 1 ]'
kill $daemon
wait $daemon

start_daemon 'host_memory: 100MiB'
start_swapper large --request 200MiB --limit 0.9
tell large 'alloc a 300m'
say park-large sluice park large
say doctor-small sluice doctor
echo exit >"$work/large.in"
kill $daemon
wait
start_daemon 'host_memory: 0'
say doctor-none sluice doctor
kill $daemon
wait
INSIDE
expect 'the story' 0 '' timeout -k 5 100 "$sluice" softgpu --gpus 1 --memory 1GiB -- \
	sh "$work/inside" "$work" "$holder" "$swapper" "$SCREEN"

# said NAME FILE PATTERN...: the file has lines like these.
said() {
	name=$1 file=$work/$2
	shift 2
	for pattern; do
		rows=$((rows + 1))
		grep -q -e "$pattern" "$file" || fail "$name: no '$pattern' in: $(cat "$file")"
	done
}
said 'park' park '^one is parked: 30. MiB on the host, .* copied.*, in .*s$' '^status 0'
said 'park: twice' park-again '^one is parked already$' '^status 0'
said 'ps' ps ' one  *default .* parked  *- .* 30.MiB '
said 'ps: as JSON' ps-json '"residency": "parked"' '"evicted_bytes": 31[0-9]*' '"out_bytes": [1-9]'
said 'gpus' gpus '^  0 .* 30.MiB '
said 'gpus: as JSON' gpus-json '"evicted_bytes": 31[0-9]*' '"resident_bytes": 0' '"requests_bytes": 0'
said 'why' why '^one is parked on GPU 0: .*, 30. MiB of it on the host; `sluice resume` brings it back\.$'
said 'doctor' doctor '^ok    host .*1 GiB of host memory for swapping: 30. MiB evicted' '^ok    daemon .* protocol 1'
said 'top' screen ', 30.MiB evicted' 'A>one .* parked .* 30.MiB '
[ ! -e "$work/others" ] || said 'resume: of another user' resume-denied 'belongs to user 0' '^status 77'
said 'why: it wants to run' why-wants '^one is parked and wants to run; `sluice resume` brings it back\.$'
said 'why: as JSON' why-wants-json '"reason": "PARKED_WAITS"' '"in_its_way": true' '"residency": "parked"'
said 'resume' resume '^one is back: .* copied to its GPUs, in .*s$' '^status 0'
said 'resume: what waited went on, and nothing was lost' one '"check","result":"CUDA_SUCCESS","value":0,*"async":1'
said 'resume: twice' resume-again '^one is not parked$' '^status 0'
# The buffer and its module: its context is paid from the GPU's reserve, and is not USED.
said 'ps: back' ps-back ' one .* bound .* 302MiB  *-  *- '
said 'park: as JSON' park-json '"done": true' '"parked": true' '"evicted_bytes": 31[0-9]*' '"held_bytes": 0'
said 'resume: as JSON' resume-json '"done": true' '"parked": false' '"evicted_bytes": 0'
said 'park: without a wait' park-no-wait '^one is being parked$' '^status 0'
said 'resume: by id' resume-by-id '^one is back' '^status 0'
same 'nothing was ever lost' "$(grep '"check"' "$work/one" | grep -vc '"value":0')" 0
said 'set' set ', warm after 300ms$'
said 'why: warm' why-warm '^one is warm and comes back with its next call on GPU 0: .* 30. MiB of it on the host'
said 'set: never' set-never ', never warm for being idle$'
said 'run: warm' events 'two is warm: 5. MiB were moved from GPU 0 to the host after .* without work' \
	'one is parked with 30. MiB on the host' 'one is resumed: its request is guaranteed again' \
	'one has its 30. MiB back on GPU 0 after '
said 'park: --swap=off' park-off 'off cannot be parked: its memory may not be moved (--swap=off' '^status 75'
said 'park: no room on the host' park-large 'large cannot be parked: its 3.* MiB do not fit in the .* left' \
	'sluice doctor shows what uses it' '^status 75'
said 'doctor: little host memory' doctor-small '^ok    host .*100 MiB of host memory for swapping'
said 'doctor: no host memory' doctor-none '^warn  host .*host_memory is 0' 'leave host_memory out of sluiced.conf'
finish
