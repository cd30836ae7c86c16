#!/bin/sh
# Four models of 10 GiB with requests of 3 GiB on one GPU of 16 GiB, all at a thirty-second of that: 320 MiB of
# weights, 96 MiB of request, 512 MiB of GPU. All four are loaded once and answer from then on, whoever was there last.
# Off: nothing is moved to the host.
export BOX='--gpus 1 --memory 512MiB'
export LIMIT=250
. "$(dirname "$0")/lib.sh"
on config 'host_memory: 2GiB'
off config 'host_memory: 0'
config 'turn_max: 500ms'
off config 'longest_wait: 1s'
daemon_start
models='one two three four'
for name in $models; do
	start $name --request 96MiB --limit 1.0 -- "$P/model-server" --name $name --weights 320MiB --item 4MiB --touch 64KiB \
		--batch-max 4 --requests 3 --think-ms 200
	eval "pid_$name=$PID"
done
loaded=0
for name in $models; do
	pid=
	eval "pid=\$pid_$name"
	[ "$(came $name $pid loaded)" = no ] || loaded=$((loaded + 1))
done
promise "models that are loaded" $loaded = 4
for name in $models; do
	eval "status \$pid_$name"
	promise "$name answers all" $STATUS = 0
	promise "$name answers right" "$(json -l event=end wrong <"$T/$name" 2>/dev/null || echo none)" = 0
done
scene_finish
