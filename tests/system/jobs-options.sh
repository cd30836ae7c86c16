#!/bin/sh
# The options that run and submit share, each submitted to a real daemon that has to do as it says. A common option that is not tried
# here fails the test. A job without any of them must show something else, so that no default is taken for an effect.
export BOX='--gpus 2 --memory 512MiB'
export LIMIT=90
. "$(dirname "$0")/lib.sh"
software_only "two GPUs"
S="$B/sluice"
config 'host_memory: 256MiB'
config "data_dir: $T/data"
daemon_start
"$S" resource apply small --request 24MiB --priority 3 >"$T/said" 2>&1 || fail "$(cat "$T/said")"
printf 'projects:\n  lab:\n    gpu: {quota: 1}\n' >"$T/projects.yaml"
"$S" project apply "$T/projects.yaml" >"$T/said" 2>&1 || fail "$(cat "$T/said")"

is_running() { [ "$("$S" ps --jobs --json | json "name=$1.state")" = running ]; }
# queue NAME OPTION...: a job that stays; without a size in the options it asks for little, so that all run together.
queue() {
	queue_name=$1
	shift
	case " $* " in
	*' --request '* | *' --limit '*) ;;
	*) set -- --request 16MiB "$@" ;;
	esac
	"$S" submit --name "$queue_name" "$@" -- sleep 80 >"$T/said" 2>&1 || fail "$*: $(cat "$T/said")"
	until_true 20 is_running "$queue_name" || fail "$queue_name does not run: $("$S" why "$queue_name")"
}
# of NAME FIELD: of its workload; dumped: the same, of the daemon's own.
of() { "$S" ps --json | json "name=$1.$2"; }
dumped() { "$S" dump | json "workloads.name=$1.$2"; }
# effect HOW FIELD VALUE OPTION...: a job with these options has it, and one without has not.
effect() {
	effect_how=$1
	effect_field=$2
	effect_value=$3
	shift 3
	queue "job-$OPTION" "$@"
	check "$*: $effect_field" "$($effect_how "job-$OPTION" "$effect_field")" = "$effect_value"
	check "without: $effect_field" "$($effect_how plain "$effect_field")" != "$effect_value"
}

option_request() { effect of request_bytes 33554432 --request 32MiB; }
option_limit() { effect of limit_bytes 50331648 --limit 48MiB --request 16MiB; }
gpus_of() { "$S" ps --json | grep -c "\"name\": \"$1\""; }
option_gpus() { effect gpus_of '' 2 --gpus 2; }
option_priority() { effect of priority 7 --priority 7; }
option_project() { effect of project lab --project lab; }
option_name() { effect of name job-name; }
option_swap() {
	effect of swap 0 --swap off
	# What is never moved is not parked either.
	timeout 10 "$S" park "job-$OPTION" >"$T/said" 2>&1
	check 'it is not parked' $? != 0
}
option_keep_resident() { effect of swap 0 --keep-resident; }
option_idle_grace() { effect dumped idle_grace_ms 7000 --idle-grace 7s; }
option_rdma() { effect dumped rdma 1 --rdma; }
option_oom_first() { effect of oom_first 1 --oom-first on; }
option_on_collision() { effect of on_collision 'swap fail' --on-collision swap,fail; }
option_longest_wait() { effect dumped longest_wait_ms 7000 --longest-wait 7s; }
option_resource() {
	"$S" submit --resource small --name job-resource -- sleep 80 >"$T/said" 2>&1 || fail "--resource: $(cat "$T/said")"
	until_true 20 is_running job-resource || fail "job-resource does not run"
	check '--resource: its request and priority' "$(of job-resource request_bytes) $(of job-resource priority)" = "25165824 3"
}
option_observe() {
	"$S" submit --observe --name job-observe -- sleep 80 >"$T/said" 2>&1 || fail "--observe: $(cat "$T/said")"
	until_true 20 is_running job-observe || fail "job-observe does not run"
	check '--observe: no request, and no limit but the GPU' "$(of job-observe request_bytes) $(of job-observe limit_bytes)" = "0 $("$S" gpus --json | json 0.shareable_bytes)"
	observed() { [ "$("$S" advise --json | json names.name=job-observe.observed)" = 1 ]; }
	until_true 20 observed || fail "nobody is observed: $("$S" advise --json)"
	"$S" submit --observe --request 16MiB -- sleep 80 >"$T/said" 2>&1
	check '--observe with a request: refused' $? = 64
}
option_warm_after() { effect of warm_after_ms 2500 --warm-after 2500ms; }
option_detach_after() { effect of detach_after_ms 2500 --detach-after 2500ms; }
option_compute_request() { effect of compute.request 0.250000 --compute-request 0.25; }
option_compute_limit() { effect of compute.limit 0.500000 --compute-limit 0.5; }
option_force() {
	# What another program starts is not seen from here.
	mkdir "$T/bin"
	printf '#!/bin/sh\nexec sleep 80\n' >"$T/bin/docker"
	chmod +x "$T/bin/docker"
	"$S" submit --name job-force -- "$T/bin/docker" >"$T/said" 2>&1
	check 'without: refused' $? = 64
	"$S" submit --force --request 16MiB --name job-force -- "$T/bin/docker" >"$T/said" 2>&1
	check '--force' $? = 0
	until_true 20 is_running job-force || fail "job-force does not run"
}
option_json() {
	"$S" submit --json --request 16MiB --name job-json -- sleep 80 >"$T/said.json"
	check '--json' $? = 0
	check 'its number' "$(json job <"$T/said.json")" = "$("$S" ps --jobs --json | json name=job-json.job)"
}
# Tried by jobs-cli and run-wait.
option_wait() { :; }
option_help() { :; }

# rows VERB: the names of its options.
rows() { "$S" "$1" --help | sed -n 's/^  --\([a-z-]*\).*/\1/p' | sort; }
queue plain
rows run >"$T/run"
rows submit >"$T/submit"
comm -12 "$T/run" "$T/submit" >"$T/both"
check 'options that both have' "$(wc -l <"$T/both")" -ge 13
while read -r OPTION; do
	function=option_$(echo "$OPTION" | tr - _)
	if command -v "$function" >/dev/null; then
		"$function"
	else
		fail "run and submit have --$OPTION, and nobody tries it: write $function"
	fi
done <"$T/both"
# Those of submit that run lacks are jobs-cli's.
check 'options of run that submit lacks' "$(comm -23 "$T/run" "$T/submit" | tr '\n' ' ')" = ''
finish
