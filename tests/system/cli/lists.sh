#!/bin/sh
# ps, gpus, version and doctor against made-up lists: columns, width, JSON.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

fake lists
widest() { awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }' "$work/out"; }

expect 'ps' 0 '^ *ID  *NAME  *PROJECT  *GPU  *PRIO  *STATE  *REQUEST  *LIMIT  *USED  *EVICTED  *WAITING  *MAX-WAIT  *CLIENTS  *AGE  *COMMAND$' \
	"$sluice" ps
same 'ps: three rows and a title' "$(wc -l <"$work/out")" 4
expect 'ps: used is backing and hidden' 0 '4GiB  *12GiB  *3.25GiB' "$sluice" ps
expect 'ps: who waits, and for what' 0 'waiting .* 300MiB ' "$sluice" ps
same 'ps: no escape sequence of others' "$(tr -dc '\033' <"$work/out" | wc -c)" 0
for columns in 80 100 132; do
	expect "ps at $columns" 0 '^ *ID  *NAME ' env COLUMNS=$columns "$sluice" ps
	[ "$(widest)" -le $columns ] || fail "ps at $columns is $(widest) wide"
	expect "ps at $columns keeps numbers" 0 '4GiB  *12GiB  *3.25GiB' env COLUMNS=$columns "$sluice" ps
	expect "gpus at $columns" 0 '^GPU ' env COLUMNS=$columns "$sluice" gpus
	[ "$(widest)" -le $columns ] || fail "gpus at $columns is $(widest) wide"
done
expect 'gpus' 0 '80GiB  *78GiB  *40GiB .*38GiB  *97%  *ok$' "$sluice" gpus
expect 'gpus: degraded' 0 ' degraded$' "$sluice" gpus
expect 'gpus: stale' 0 ' stale$' "$sluice" gpus
expect 'gpus: uuid' 0 'GPU-00000000-0000-0000-0000-000000000002' "$sluice" gpus
expect 'version' 0 "^daemon   0.1.0, protocol 1, at $SLUICE_SOCKET" "$sluice" version
expect 'doctor' 1 '' "$sluice" doctor
expect 'watch ends with its reader' 0 '' sh -c "'$sluice' ps --watch 1 | head -n 2"

# --- JSON: whole, of one shape, and with the same facts
json() { python3 -c "import json, sys; d = json.load(open('$work/out')); print($1)"; }
if command -v python3 >/dev/null; then
	run "$sluice" ps --json
	same 'ps --json' "$(json 'len(d), d[0]["hidden_bytes"], d[2]["waiting"], d[1]["priority"], d[0]["state"]')" \
		"3 268435456 1 -4 reserved"
	same 'ps --json: GPUs by their lasting names' "$(json '[r["gpu_uuid"] for r in d]')" \
		"['GPU-00000000-0000-0000-0000-000000000000', 'GPU-00000000-0000-0000-0000-000000000001', None]"
	run "$sluice" gpus --json
	same 'gpus --json' "$(json 'len(d), d[1]["state"], d[2]["gpu"], d[0]["shareable_bytes"]')" \
		"3 degraded 2 83751862272"
	run "$sluice" version --json
	same 'version --json' "$(json 'd["protocol"], d["daemon"]["driver"], d["daemon_error"]')" \
		"1 535.1 None"
	run "$sluice" doctor --json
	same 'doctor --json' "$(json 'd["ok"], d["checks"][0]["check"], d["checks"][1]["level"]')" \
		"False library ok"
	SLUICE_SOCKET=$work/none.sock run "$sluice" version --json
	same 'version --json, no daemon' "$status $(json 'd["daemon"], "no daemon" in d["daemon_error"]')" \
		"0 None True"
fi

# --- states that want attention
fake states
expect 'over limit' 0 ' over limit ' "$sluice" ps
expect 'untakeable wins over over limit' 0 ' 9 .* untakeable ' "$sluice" ps
expect 'stopping wins over both' 0 ' 3 .* stopping ' "$sluice" ps
expect 'gpus: lost' 0 ' lost$' "$sluice" gpus
expect 'ps --clients' 0 '^NAME  *PID  *GPU  *STATE  *BACKING  *HIDDEN  *HELD  *GRANTED  *WAITING  *IDLE  *BUSY$' "$sluice" ps --clients
expect 'ps --clients: idle' 0 '^a-model-server-0  *200  *0  *running  *1GiB  *512MiB  *-  *0B  *-  *65s  *-$' "$sluice" ps --clients
expect 'ps --clients: why untakeable' 0 ' untakeable (stopped) .* 45s$' "$sluice" ps --clients
for columns in 80 100; do
	for words in ps gpus 'ps --clients'; do
		# shellcheck disable=SC2086 # words are meant
		expect "$words at $columns" 0 '' env COLUMNS=$columns "$sluice" $words
		[ "$(widest)" -le $columns ] || fail "$words at $columns is $(widest) wide"
	done
done
if command -v python3 >/dev/null; then
	run "$sluice" ps --json
	same 'ps --json: all flags' "$(json '[[k for k in ("swap", "oom_first", "over_limit", "untakeable", "stopping") if r[k]] for r in d]')" \
		"[[], ['swap', 'oom_first', 'over_limit'], ['swap', 'over_limit', 'untakeable'], ['swap', 'over_limit', 'untakeable', 'stopping']]"
	run "$sluice" gpus --json
	same 'gpus --json: lost' "$(json '[(r["state"], r["lost"], r["degraded"]) for r in d]')" \
		"[('ok', False, False), ('degraded', False, True), ('lost', True, False)]"
	run "$sluice" ps --clients --json
	same 'ps --clients --json' "$(json '[(r["pid"], r["condition"], r["idle_ms"], r["busy_ms"], r["waits"]) for r in d][:3]')" \
		"[(200, 'running', 65000, 0, False), (201, 'stopped', None, 45000, False), (202, 'traced', None, 0, True)]"
fi

# --- memory on the host
fake swap
run "$sluice" ps
same 'swap: where memory is' "$(awk '{ print $6 }' "$work/out" | tr '\n' ' ')" \
	'STATE reserved bound leaving evicted warm returning parked resuming partial parking detached '
# What was given up is not shown as guaranteed.
same 'swap: requests' "$(awk '{ print $7 }' "$work/out" | tr '\n' ' ')" 'REQUEST 4GiB 4GiB 4GiB 4GiB 4GiB 4GiB - - 4GiB - - '
same 'swap: what is evicted' "$(awk '{ print $10 }' "$work/out" | tr '\n' ' ')" 'EVICTED - - 2GiB 2GiB 2GiB 2GiB 2GiB 2GiB 2GiB 2GiB 2GiB '
same 'swap: longest waits' "$(awk '{ print $12 }' "$work/out" | tr '\n' ' ')" 'MAX-WAIT - - - 12s - - endless - - - - '
expect 'ps at 80 keeps what is evicted' 0 ' USED  *EVICTED  *WAITING' env COLUMNS=80 "$sluice" ps
expect 'and names whole, before commands' 0 '^ *1  a-model-server-0  ' env COLUMNS=80 "$sluice" ps
same 'of which there are none' "$(grep -c COMMAND "$work/out")" 0
[ "$(widest)" -le 80 ] || fail "ps at 80 is $(widest) wide"
expect 'gpus: evicted, its place' 0 '  *RESIDENT  *EVICTED  *HIDDEN' "$sluice" gpus
expect 'gpus: evicted' 0 '^  0 .* 40GiB  *0B  *16GiB ' "$sluice" gpus
expect 'why: parked' 0 '^a-model-server-6 is parked on GPU 0: .* [(]given up meanwhile[)], .*, 2.* GiB of it on the host; `sluice resume` brings it back\.$' \
	"$sluice" why a-model-server-6
expect 'why: without a bound' 0 '^Longest wait for its turn: no bound: the host has no memory for the workload in its way\.$' "$sluice" why a-model-server-6
expect 'why: the longest wait' 0 '^Longest wait for its turn: 12s\.$' "$sluice" why a-model-server-3
expect 'doctor: host memory' 1 '' "$sluice" doctor
rows=$((rows + 1))
grep -q '^ok    host  *16.* GiB of host memory for swapping: 12.* GiB evicted, 1.* GiB allocated ahead or copies .* 60.* GiB left' "$work/out" ||
	fail "doctor: host memory: $(cat "$work/out")"
rows=$((rows + 1))
grep -q '^ok    daemon .*, protocol 1, ' "$work/out" || fail "doctor: protocol: $(cat "$work/out")"
if command -v python3 >/dev/null; then
	run "$sluice" ps --json
	same 'ps --json: swap' "$(json '[(r["residency"], r["evicted_bytes"] >> 30, r["turns"]) for r in d][5], d[3]["longest_wait_ms"], d[6]["longest_wait_ms"]')" \
		"('returning', 2, 5) 12000 None"
	run "$sluice" gpus --json
	same 'gpus --json: swap' "$(json 'd[0]["evicted_bytes"] >> 30, d[0]["resident_bytes"], d[1]["evicted_bytes"]')" '16 0 0'
	run "$sluice" why a-model-server-4 --json
	same 'why --json: swap' "$(json 'd["residency"]')" warm
fi

finish
