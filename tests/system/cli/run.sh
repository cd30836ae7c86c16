#!/bin/sh
# sluice run: what the daemon is told, what CMD finds, and that status and signals are CMD's own.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

fake admit 2>"$work/told"
told() { tail -n 1 "$work/told"; }

# --- what the daemon is told
expect 'defaults' 0 '' "$sluice" run -- true
same 'defaults' "$(told)" \
	'RUN request=0:0 limit=0:0 gpus=1 priority=0 flags=0 wait=0 warm=0 grace=0 visible=unset name= project=default command=true'
expect 'all options' 0 '' env CUDA_VISIBLE_DEVICES=2,1 "$sluice" run --request 0.25 --limit=10GiB \
	--gpus 2 --priority -7 --project p --name n true a 'b c'
same 'all options' "$(told)" \
	'RUN request=1:250000 limit=2:10737418240 gpus=2 priority=-7 flags=0 wait=0 warm=0 grace=0 visible=set:2,1 name=n project=p command=true a b c'
expect 'swap, oom-first, longest-wait' 0 '' "$sluice" run --swap off --oom-first=on --longest-wait 30s -- true
same 'no swap, out-of-memory first' "$(told | cut -d' ' -f6-7)" 'flags=6 wait=30000'
expect 'not out-of-memory first' 0 '' "$sluice" run --swap on --oom-first off -- true
same 'waits' "$(told | cut -d' ' -f6-7)" 'flags=8 wait=0'
expect 'for other devices' 0 '' "$sluice" run --rdma -- true
same 'for other devices' "$(told | cut -d' ' -f6-7)" 'flags=18 wait=0'
expect 'for other devices, moved' 64 '--rdma and --swap on exclude each other' "$sluice" run --rdma --swap on -- true
expect 'request 0' 0 '' "$sluice" run --request 0 -- true
same 'request 0 leaves the limit at all' "$(told | cut -d' ' -f2-3)" 'request=2:0 limit=1:1000000'
expect 'request 0 and a limit' 0 '' "$sluice" run --request 0 --limit 2MiB -- true
same 'request 0 and a limit' "$(told | cut -d' ' -f2-3)" 'request=2:0 limit=2:2097152'
expect 'a small request below a limit' 0 '' "$sluice" run --request 1B --limit 0.5 -- true
same 'a small request' "$(told | cut -d' ' -f2-3)" 'request=2:1 limit=1:500000'
expect 'an empty mask is not an absent one' 0 '' env CUDA_VISIBLE_DEVICES= "$sluice" run -- true
same 'empty mask' "$(told | sed 's/.*visible=\([^ ]*\).*/\1/')" 'set:'
expect 'a long command line' 0 '' "$sluice" run -- true "$(printf '%0500d' 0)"
same 'is cut' "$(told | sed 's/.*command=//' | wc -c)" 128
expect 'control characters' 0 '' "$sluice" run -- true "$(printf 'a\033[31mb')"
same 'control characters' "$(told | sed 's/.*command=//')" 'true a?[31mb'

# --- what CMD finds
expect 'environment' 0 '' "$sluice" run -- env
for want in CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1,3 \
	SLUICE_WORKLOAD=abababababababababababababababab "SLUICE_SOCKET=$SLUICE_SOCKET" \
	"LD_PRELOAD=$by_loader"; do
	same "environment $want" "$(printf '%s\n' "$out" | grep -c -x -e "$want")" 1
done
cd "$work" || exit 1
expect 'a relative socket becomes absolute' 0 "^SLUICE_SOCKET=/.*/admit.sock" \
	env SLUICE_SOCKET=admit.sock "$sluice" run -- env
expect 'LD_PRELOAD of the user stays behind' 0 '' env LD_PRELOAD="$library" "$sluice" run -- env
same 'once only' "$(printf '%s\n' "$out" | grep '^LD_PRELOAD=')" "LD_PRELOAD=$by_loader"
expect 'nothing open is left behind' 0 '' sh -c "exec '$sluice' run -- ls -l /proc/self/fd"
same 'no socket' "$(printf '%s\n' "$out" | grep -c socket:)" 0
expect 'the same process' 0 '' sh -c 'echo $$; exec "$0" run -- sh -c "echo \$\$"' "$sluice"
same 'one pid' "$(printf '%s\n' "$out" | sort -u | wc -l)" 1
expect 'standard input passes' 0 '^hello$' sh -c "echo hello | '$sluice' run -- cat"
expect 'quiet' 0 '' "$sluice" run -- true
same 'quiet' "$out$err" ''

# --- status and signals
expect 'status' 42 '' "$sluice" run -- sh -c 'exit 42'
expect 'status 75 is CMD'"'"'s too' 75 '' "$sluice" run -- sh -c 'exit 75'
expect 'killed' 143 '' sh -c "'$sluice' run -- sh -c 'kill -TERM \$\$'; exit \$?"
"$sluice" run -- sh -c 'trap "echo got it; exit 3" USR1; touch "$0"; while :; do sleep 0.05; done' \
	"$work/ready" >"$work/signalled" &
pid=$!
wait_for "$work/ready"
kill -USR1 $pid
wait $pid
same 'a signal reaches CMD' "$? $(cat "$work/signalled")" '3 got it'

# --- force, JSON, scripts
mkdir "$work/bin"
printf '#!/bin/sh\necho inside\n' >"$work/bin/sudo"
chmod +x "$work/bin/sudo"
expect 'force warns and goes on' 0 'warning: sudo drops LD_PRELOAD' \
	"$sluice" run --force -- "$work/bin/sudo"
same 'force' "$out" inside
printf 'echo without a first line\n' >"$work/plain"
chmod +x "$work/plain"
expect 'a script without interpreter line' 0 'without a first line' "$sluice" run -- "$work/plain"
expect 'found along PATH' 0 '^inside$' env PATH="$work/bin:$PATH" "$sluice" run --force -- sudo
expect 'JSON' 0 '' "$sluice" run --json -- true
same 'JSON' "$err" '{"ok": true, "workload": 7, "name": "w7", "request_bytes": 1073741824, "limit_bytes": 2147483648, "visible_devices": "1,3"}'
finish
