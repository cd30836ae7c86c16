#!/bin/sh
# sluice softgpu: CMD's status and signals pass through, all inside see the same GPUs, and
# nothing of the box is left behind.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
unset SLUICE_SOCKET SLUICE_STATE

box() { "$sluice" softgpu --gpus 2 --memory 1GiB "$@"; }

expect 'status' 42 '' box -- sh -c 'exit 42'
expect 'killed' 143 '' sh -c "'$sluice' softgpu -- sh -c 'kill -TERM \$\$'; exit \$?"
expect 'not found' 127 'no-such-program' box -- no-such-program
expect 'not executable' 126 'Permission denied' box -- /etc/passwd
expect 'standard input passes' 0 '^hello$' sh -c "echo hello | '$sluice' softgpu -- cat"
expect 'environment' 0 '^SLUICE_SOFTGPU=/' box -- env
same 'own folder is first in PATH' \
	"$(printf '%s\n' "$out" | sed -n 's/^PATH=\([^:]*\):.*/\1/p')" "$(realpath "$SLUICE_BUILD")"
same 'a socket of its own' "$(printf '%s\n' "$out" | grep -c '^SLUICE_SOCKET=/')" 1
expect 'the socket the user set stays' 0 "^SLUICE_SOCKET=/tmp/mine$" \
	env SLUICE_SOCKET=/tmp/mine "$sluice" softgpu -- env

expect 'models' 0 '^Sluice Software GPU H100$' "$sluice" softgpu --gpus 3 --models L4,H100 -- sh -c \
	'sluiced --log warning & until sluice gpus >/dev/null 2>&1; do sleep 0.05; done; sluice gpus --json | tr "," "\n" | sed -n "s/.*\"name\": \"\(.*\)\".*/\1/p"; kill $!'
same 'models: each GPU has one, the last one for the rest' "$out" "Sluice Software GPU L4
Sluice Software GPU H100
Sluice Software GPU H100"
for models in 'a,b' '' 'a,' ',a' 'a/b' 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'; do
	expect "no models: '$models'" 78 'are no names, joined by commas' "$sluice" softgpu --models "$models" -- true
done
expect 'a fault plan of every kind' 0 '' "$sluice" softgpu \
	--faults cuMemCreate:3=oom,cuMemMap:@5=unknown,cuMemAlloc_v2:1=OUT_OF_MEMORY,cuCtxSynchronize:2=hang,cuInit:9=3 -- true
same 'is taken without a word' "$err" ''

# --- a signal to sluice softgpu is CMD's
"$sluice" softgpu -- sh -c 'trap "echo got it; exit 3" USR1; touch "$0"; while :; do sleep 0.05; done' \
	"$work/ready" >"$work/signalled" &
pid=$!
wait_for "$work/ready"
kill -USR1 $pid
wait $pid
same 'a signal reaches CMD' "$? $(cat "$work/signalled")" '3 got it'

# --- what CMD leaves behind ends with it, also what ignores SIGTERM
expect 'leftovers' 0 '' "$sluice" softgpu -- sh -c '
	env >"$0/env"
	sleep 300 & echo $! >"$0/left"
	(trap "" TERM; sh -c "echo \$\$ >\"\$0/stubborn\"; exec sleep 300" "$0") &
	while [ ! -s "$0/stubborn" ]; do sleep 0.02; done' "$work"
for left in left stubborn; do
	pid=$(cat "$work/$left")
	rows=$((rows + 1))
	! kill -0 "$pid" 2>/dev/null || fail "$left: process $pid outlived the box"
done
folder=$(sed -n 's/^SLUICE_SOCKET=//p' "$work/env")
rows=$((rows + 1))
[ ! -e "$(dirname "$folder")" ] || fail "$folder: its folder is left behind"
server=$(sed -n 's/^SLUICE_SOFTGPU=//p' "$work/env")
rows=$((rows + 1))
[ ! -e "$server" ] || fail "$server is left behind"

# --- NVML inside says what was asked for
expect 'doctor inside, without a daemon' 1 '' \
	"$sluice" softgpu --gpus 2 --memory 1GiB -- sluice doctor
for want in '^ok    nvml       NVML works and shows 2 GPUs' '^ok    software   software GPUs are in use' \
	'^ok    devices ' '^FAIL  daemon '; do
	rows=$((rows + 1))
	printf '%s\n' "$out" | grep -q -e "$want" || fail "doctor inside: no '$want' in: $out"
done
finish
