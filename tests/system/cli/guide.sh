#!/bin/sh
# The guide's outputs are true: its stories are played with real processes on a software GPU, and each
# line that the guide shows below a "$ sluice" must be among what was said, numbers aside. GUIDE_PRINT=1
# prints what was said, to be put into the guide.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
unset SLUICE_SOCKET SLUICE_STATE
: "${SLUICE_SOURCE:?names the source folder}" "${SCREEN:?names the terminal}"
programs=$SLUICE_BUILD/tests/programs
[ -z "$is_sanitized" ] || skip 'the library of a sanitized build cannot be loaded into a program'
[ -x "$programs/tenant" ] || skip 'no test programs'

# What users would run; the guide calls them by these names.
mkdir "$work/bin"
program() { # NAME OPTIONS of tenant
	printf '#!/bin/sh\nexec %s %s\n' "$(realpath "$programs")/tenant" "$2" >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}
# Lives on without its GPU, so that it can be asked what became of it as long as that takes.
program train '--bytes 1200MiB --work 60 --ms 90000 --keep-going'
program serve '--bytes 300MiB --work 20 --ms 90000'
program notebook '--bytes 800MiB --ms 90000'
program tune '--bytes 1000MiB --work 60 --ms 90000'
program stuck '--bytes 1200MiB --endless --ms 90000'
program eval '--bytes 100MiB --work 20 --ms 90000'
step() { # NAME OPTIONS of stepper
	printf '#!/bin/sh\nexec %s %s\n' "$(realpath "$programs")/stepper" "$2" >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}
# Until the story has been told.
step crawl "--steps 60 --ms 30 --until $work/over"
step fit "--steps 30 --ms 30 --until $work/over"
program bare '--bytes 200MiB --ms 90000'

cat >"$work/play" <<'PLAY'
work=$1 screen=$2
cd "$work/bin" || exit 90
conf=$work/sluiced.conf
jobs=
# Both in the guide: what was typed, and what was said.
show() {
	echo "\$ $*" >>"$work/said"
	"$@" >>"$work/said" 2>&1
}
until_true() {
	tries=0
	until eval "$1"; do
		tries=$((tries + 1))
		[ $tries -gt 600 ] && { echo "never: $1"; sluice ps; sluice events | tail; cat "$work/daemon.log"; exit 97; }
		sleep 0.05
	done
}
start_daemon() { # lines of the configuration
	printf '%s\n' "$@" 'measure_interval: 100ms' >"$conf"
	sluiced --config "$conf" --state "$work/state" 2>>"$work/daemon.log" & daemon=$!
	until_true 'sluice gpus >/dev/null 2>&1'
}
begin() { # NAME PROGRAM OPTIONS...: and waits until it holds its memory, unless NAME ends in &
	name=$1 program=$2
	shift 2
	echo "\$ sluice run --name $name $* -- ./$program &" >>"$work/said"
	rm -f "$work/$name.out" # what one of an earlier story said
	sluice run --name "$name" "$@" -- "./$program" >"$work/$name.out" 2>&1 &
	jobs="$jobs $!"
	[ -n "${no_wait-}" ] || until_true "grep -q held '$work/$name.out'"
}
end_story() {
	for job in $jobs; do kill -KILL "$job" 2>/dev/null; done
	jobs=
	until_true '[ "$(sluice ps | wc -l)" = 1 ]'
	until_true 'sluice gpus --json | grep -q "\"dying_bytes\": 0\|\"lost\": true"'
	kill $daemon
	wait $daemon
	echo >>"$work/said"
}
# show_once PATTERN...: CMD's output as soon as it has lines like all of these; CMD is in $shown.
show_once() {
	until_true "$shown >'$work/once' 2>&1; all_there $(printf "'%s' " "$@")"
	{ echo "\$ $shown"; cat "$work/once"; } >>"$work/said"
}
all_there() {
	for pattern; do grep -q -e "$pattern" "$work/once" || return 1; done
}
happened() { sluice events --json | grep -q "\"reason\": \"$1\""; }

echo '# what if' >>"$work/said"
(
	cd "$SLUICE_SOURCE/docs/guide/examples" || exit 94
	show sluice simulate --nodes nodes.csv --jobs jobs.csv --projects lab.yaml
	show sluice simulate --nodes nodes.csv --jobs jobs.csv --projects lab.yaml --on-reclaim terminate
) || exit 94

echo '# while it runs' >>"$work/said"
start_daemon 'resolvers: wait'
begin train train --request 512MiB --limit 0.8
begin serve serve --request 0.25 --limit 0.5
no_wait=1 begin notebook notebook --request 0 --limit 0.5
until_true 'sluice why notebook | grep -q "waited [1-9][0-9.]*s"'
show sluice ps
show sluice ps --clients
show sluice why notebook
show sluice why serve
printf 'expect waited\ndump %s\nkeys q\nexit 0\n' "$work/screen" |
	TERM=xterm-256color LC_ALL=C.UTF-8 "$screen" 80 24 -- sluice top || exit 96
{ echo '$ sluice top'; cat "$work/screen"; } >>"$work/said"
show sluice set notebook --priority 5 --longest-wait 10m
show sluice set train --limit 1GiB
show sluice set serve --request 0.9
show sluice stop train --grace 30s
until_true 'grep -q held "$work/notebook.out"'
show sluice why notebook
show sluice why train
show sluice events --last 8
end_story

echo '# collisions' >>"$work/said"
start_daemon 'resolvers: wait' 'longest_wait: 2s'
begin train train --request 512MiB --limit 0.8
no_wait=1 begin notebook notebook --request 0 --limit 0.5
until_true 'happened WAITED_TOO_LONG'
no_wait=1 begin caching notebook --request 0 --limit 0.5 --oom-first on
until_true 'happened OOM_FIRST'
show sluice events --name notebook
show sluice events --name caching
end_story
start_daemon 'resolvers: priority wait' 'longest_wait: 10s' 'stop_idle: 2s' 'stop_grace: 2s'
begin notebook notebook --request 0 --limit 0.5
begin serve serve --request 0.25 --limit 0.5
sleep 3
no_wait=1 begin train train --request 512MiB --limit 0.8
until_true 'happened STOP_IDLE'
until_true 'grep -q held "$work/train.out"'
show sluice why notebook
show sluice events --name notebook
no_wait=1 begin urgent notebook --request 0 --limit 0.5 --priority 10
until_true 'happened STOP_PRIORITY'
until_true '! sluice ps | grep -q "^train "'
show sluice why train
end_story
start_daemon 'resolvers: wait' 'untakeable_after: 1s'
begin stuck stuck --request 0 --limit 0.8
until_true 'grep -q endless "$work/stuck.out"'
no_wait=1 begin train train --request 0.9
until_true 'happened UNTAKEABLE'
show sluice ps --clients
show sluice events --name train
end_story

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	echo '# bounds' >>"$work/said"
	chmod 711 "$work"
	box_socket=$SLUICE_SOCKET
	SLUICE_SOCKET=$work/sluiced.sock
	start_daemon 'bounds:' '  default: {max_request: 0.25, max_limit: 0.5, max_priority: 0, max_workloads: 2}'
	as() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
	cd / || exit 95
	if as sluice version >/dev/null 2>&1; then
		touch "$work/bounds"
		for words in '--request 0.5' '--request 0 --limit 0.8' '--priority 10 --limit 0.1'; do
			echo "\$ sluice run $words -- ./train" >>"$work/said"
			# shellcheck disable=SC2086 # words are meant
			as sluice run $words -- true 2>>"$work/said"
		done
		as sluice run --limit 0.1 --name one -- sleep 60 &
		as sluice run --limit 0.1 --name two -- sleep 60 &
		until_true '[ "$(sluice ps | wc -l)" = 3 ]'
		echo "\$ sluice run --limit 0.1 -- ./train" >>"$work/said"
		as sluice run --limit 0.1 -- true 2>>"$work/said"
		as sluice stop one --now >/dev/null
		as sluice stop two --now >/dev/null
	fi
	end_story
	SLUICE_SOCKET=$box_socket
	cd "$work/bin" || exit 90
fi
echo '# swapping' >>"$work/said"
start_daemon 'host_memory: 2GiB'
begin tune tune --request 512MiB --limit 0.8
# On a busy machine they say on standard error that it takes its time.
{ echo '$ sluice park tune'; sluice park tune 2>/dev/null; } >>"$work/said"
show sluice ps
{ echo '$ sluice resume tune'; sluice resume tune 2>/dev/null; } >>"$work/said"
begin rival tune --request 512MiB --limit 0.8
shown='sluice ps' show_once ' tune .* evicted .*[MG]iB  *-  *[0-9]*[sm] ' ' rival .* bound '
shown='sluice why tune' show_once 'for its turn on GPU' 'Longest wait for its turn: '
shown='sluice events --name tune' show_once 'were moved from GPU 0 to the host, because rival' 'tune has its .* back'
{ echo '$ sluice doctor'; sluice doctor | grep '^ok    host'; } >>"$work/said"
end_story

echo '# jobs' >>"$work/said"
start_daemon 'host_memory: 2GiB'
printf 'projects:\n  vision:\n    gpu: {quota: 1}\n  text:\n    gpu: {quota: 0}\n' >lab.yaml
sluice project apply lab.yaml >/dev/null
show sluice submit --project text --name crawl -- ./crawl
until_true 'sluice logs crawl 2>/dev/null | grep -q step'
show sluice submit --try --project vision -- ./fit
show sluice submit --project vision --name fit -- ./fit
until_true 'sluice logs fit 2>/dev/null | grep -q step'
# Before, that it was stopped just now.
until_true 'sluice why crawl | grep -q "are in use"'
show sluice ps --jobs
show sluice why crawl
: >"$work/over"
show sluice wait fit crawl
show sluice logs fit --last 2
show sluice ps --all
end_story

echo '# waiting for room' >>"$work/said"
start_daemon 'host_memory: 2GiB'
printf 'projects:\n  vision:\n    gpu: {limit: 1}\n' >lab.yaml
sluice project apply lab.yaml >/dev/null
begin serve serve --project vision --request 0.75
show sluice run --project vision --request 0.5 --name eval -- ./eval
typed='sluice run --wait --project vision --request 0.5 --name eval -- ./eval'
$typed 2>"$work/eval.err" & jobs="$jobs $!"
until_true 'grep -q waits "$work/eval.err"'
{ echo "\$ $typed"; cat "$work/eval.err"; } >>"$work/said"
end_story

echo '# unmanaged, lost' >>"$work/said"
start_daemon 'unmanaged: warn'
./bare >"$work/bare.out" & bare=$!
until_true 'happened UNMANAGED_SEEN'
show sluice gpus
show sluice events --last 1
kill -KILL $bare
wait $bare 2>/dev/null
begin train train --request 512MiB --limit 0.8
sluice softgpu --lose 0
until_true 'sluice gpus | grep -q "lost$"'
until_true 'happened LOST_FOR'
until_true 'happened XID_OF_GPU'
show sluice why train
show sluice events --last 3
{ echo '$ sluice doctor'; sluice doctor | grep -A 1 gpus; } >>"$work/said"
show sluice gpus
end_story
PLAY
expect 'the stories' 0 '' timeout -k 5 280 "$sluice" softgpu --memory 2GiB -- sh "$work/play" "$work" "$SCREEN"
[ -z "${GUIDE_PRINT-}" ] || cat "$work/said"

# Numbers, times and blanks aside. A line of dots in the guide leaves something out.
if [ -s "$work/said" ] && [ "$failures" = 0 ] && command -v python3 >/dev/null; then
	# Walks have a test of their own. Bounds do not hold for root, and another user takes root to become.
	set -- "$SLUICE_SOURCE"/docs/guide/*.md
	for page; do
		shift
		case ${page##*/} in
		walk-*) ;;
		bounds.md) [ ! -e "$work/bounds" ] || set -- "$@" "$page" ;;
		*) set -- "$@" "$page" ;;
		esac
	done
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "$0") python3 - "$work/said" "$@" >"$work/compared" <<'PY'
import re, sys
from plain import console, plain

told = open(sys.argv[1]).read()
said = plain(told)
chunks = 0
for path in sys.argv[2:]:
    for block in console(path):
        for chunk in re.split(r'^ *\.\.\.\n|^(?=\$ )', block, flags=re.M):
            chunks += 1
            if plain(chunk) not in said:
                print('%s shows what is not said:\n%s' % (path.split('/')[-1], chunk))
                # What was said instead, each time that it was asked.
                typed = chunk.splitlines()[0] + '\n'
                for other in re.split(r'^(?=\$ )', told, flags=re.M):
                    if typed.startswith('$ ') and other.startswith(typed):
                        print('but:\n' + other)
print('chunks', 'some' if chunks > 10 else chunks)
PY
	same 'the guide' "$(cat "$work/compared")" 'chunks some'
fi
finish
