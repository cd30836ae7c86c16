#!/bin/sh
# slurm-lib - a Slurm of its own for a test: munged, slurmctld and NODES slurmd on this host; source it after lib.sh.
#
# slurm_start [LINE...]: writes the configuration, with LINEs at the end of slurm.conf, and starts all. plug WORD...: what
# follows the plugin's path in plugstack.conf beside the test's own places. slurmd_start N, slurmctld_start: again, after
# slurm_kill PROGRAM (slurmd0, slurmctld). All of it lies in $T, runs as root, and ends with the test.
# shellcheck disable=SC2034 # for the tests
SLURM_TOOLS=$(cd "$(dirname "$0")/../../tools" && pwd)
[ "$(id -u)" = 0 ] || skip "slurmd runs as root"
"$SLURM_TOOLS/packages" slurmctld slurmd slurm-client munge || skip "Slurm cannot be installed here"
PLUGIN=$B/spank_sluice.so
[ -f "$PLUGIN" ] || skip "built without the plugin (libslurm-dev)"
NODES=${NODES:-1}
SLOTS=${SLOTS:-4}
S=$T/slurm
# Where users have no way in they cannot run jobs.
chmod 711 "$T"
mkdir -m 755 "$S" "$S/munge" "$S/pids"
export SLURM_CONF="$S/slurm.conf"
# Slurm names its cgroups after the node, so those of two tests at a time differ.
NODE=t$$n
# Jobs leave files where they are submitted.
cd "$T" || exit 99

# shellcheck disable=SC2120 # the tests pass some
plug() { echo "required $PLUGIN socket=$T/s $*" >"$S/plugstack.conf"; }

slurm_pid() { cat "$S/pids/$1" 2>/dev/null; }
# slurm_kill NAME: as a crash.
slurm_kill() { kill -KILL "$(slurm_pid "$1")" 2>/dev/null; }
slurm_clean_up() {
	for slurm_name in slurmctld munged $(seq -f slurmd%g 0 $((NODES - 1))); do
		slurm_kill "$slurm_name"
	done
	# Those of steps outlive slurmd. Their names are all alike; the configuration is this test's.
	for slurm_proc in /proc/[0-9]*; do
		grep -qs "^slurmstepd: " "$slurm_proc/cmdline" && grep -qsz "^SLURM_CONF=$SLURM_CONF$" "$slurm_proc/environ" && kill -KILL "${slurm_proc#/proc/}"
	done
	# A frozen process ends once it is let go.
	find "/sys/fs/cgroup/freezer" -depth -path "*/slurm_$NODE*" -type d >"$T/groups" 2>/dev/null
	while read -r slurm_group; do
		# shellcheck disable=SC2046 # a list of pids is meant
		kill -KILL $(cat "$slurm_group/cgroup.procs") 2>/dev/null
		echo THAWED >"$slurm_group/freezer.state"
		until_true 5 rmdir "$slurm_group"
	done <"$T/groups"
	clean_up
}
trap slurm_clean_up EXIT

# slurm_run NAME WORD...: in the background, its process in pids/NAME.
slurm_run() {
	slurm_run_name=$1
	shift
	"$@" >>"$S/$slurm_run_name.out" 2>&1 &
	echo $! >"$S/pids/$slurm_run_name"
}
slurmctld_start() { slurm_run slurmctld slurmctld -D "$@"; }
slurmd_start() { slurm_run "slurmd$1" slurmd -D -N "$NODE$1"; }
idle_nodes() { [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" = "$NODES" ]; }

slurm_configure() {
	slurm_host=$(hostname -s)
	cat >"$SLURM_CONF" <<-END
		ClusterName=test
		SlurmctldHost=$slurm_host(127.0.0.1)
		SlurmctldPort=$1
		SlurmUser=root
		AuthType=auth/munge
		CredType=cred/munge
		AuthInfo=socket=$S/munge/socket,cred_expire=30
		SlurmctldPidFile=$S/slurmctld.pid
		SlurmdPidFile=$S/slurmd.%n.pid
		SlurmdSpoolDir=$S/spool.%n
		StateSaveLocation=$S/state
		SlurmctldLogFile=$T/slurmctld.log
		SlurmdLogFile=$T/slurmd.%n.log
		SlurmdDebug=verbose
		SlurmdParameters=config_overrides
		ProctrackType=${PROCTRACK:-proctrack/cgroup}
		TaskPlugin=task/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SwitchType=switch/none
		MpiDefault=none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/none
		PlugStackConfig=$S/plugstack.conf
		ReturnToService=2
		KillWait=2
		SchedulerParameters=sched_interval=3,batch_sched_delay=1,bf_interval=3
		GresTypes=sluice
	END
	: >"$S/gres.conf"
	for slurm_node in $(seq 0 $((NODES - 1))); do
		echo "NodeName=$NODE$slurm_node Name=sluice Count=$SLOTS" >>"$S/gres.conf"
		echo "NodeName=$NODE$slurm_node NodeHostname=$slurm_host NodeAddr=127.0.0.1 Port=$(($1 + 1 + slurm_node)) CPUs=8 Gres=sluice:$SLOTS" >>"$SLURM_CONF"
	done
	printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=yes\n' >"$S/cgroup.conf"
}
# The rest of the lines are the test's.
slurm_start() {
	mkdir -p "$S/state"
	dd if=/dev/urandom of="$S/munge.key" bs=1024 count=1 2>/dev/null
	chmod 400 "$S/munge.key"
	[ -f "$S/plugstack.conf" ] || plug
	# Below the ports that the kernel gives to connecting sockets; NODES + 1 of them, up to 4.
	slurm_configure $((20000 + $$ % 3000 * 4))
	for slurm_line in "$@"; do
		echo "$slurm_line" >>"$SLURM_CONF"
	done
	grep -q ^PartitionName "$SLURM_CONF" || echo "PartitionName=all Nodes=ALL Default=YES OverSubscribe=YES" >>"$SLURM_CONF"
	slurm_run munged munged -F --force --socket="$S/munge/socket" --key-file="$S/munge.key" --pid-file="$S/munge/pid" \
		--log-file="$S/munge.log" --seed-file="$S/munge/seed"
	until_true 10 test -S "$S/munge/socket" || fail "munged does not start: $(cat "$S/munged.out")"
	slurmctld_start -i
	for slurm_node in $(seq 0 $((NODES - 1))); do
		slurmd_start "$slurm_node"
	done
	until_true 40 idle_nodes || {
		fail "Slurm does not start: $(tail -n 3 "$S"/*.out "$T"/slurm*.log)"
		finish
	}
}

# state JOB: RUNNING, PENDING, SUSPENDED ...; empty once Slurm has forgotten it.
state() { squeue -h -a -t all -o %T -j "$1" 2>/dev/null; }
is_state() { [ "$(state "$1")" = "$2" ]; }
becomes() {
	CHECKS=$((CHECKS + 1))
	if until_true "${3:-30}" is_state "$1" "$2"; then
		note "ok: job $1 is $2"
	else
		fail "job $1 is $(state "$1"), not $2: $(scontrol show job "$1" | grep -E 'Reason|ExitCode')"
	fi
}
# keeper NAME: the process that holds the only workload, whose task is NAME; not the task itself.
keeper() { "$B/sluice" ps --json | sed -n 's/.*"pid": \([0-9]*\).*/\1/p' | grep -vx "$(pid_of "$1")" | head -n 1; }
# As in lib.sh; a step's name has a dot, which json-get would take for its own.
use() { "$B/sluice" ps --json | sed 's/"slurm-\([0-9]*\)\./"slurm-\1_/' | json "name=$(echo "$1" | tr . _).$2"; }
# has_workload NAME; no_workload NAME
has_workload() { [ -n "$(use "$1" state)" ]; }
no_workload() { ! has_workload "$1"; }
SRUN="srun -n1 --gres=sluice:1"
task_files() {
	rm -f "$T/$1.in" "$T/$1.pid"
	mkfifo -m 666 "$T/$1.in"
	: >"$T/$1"
	printf '#!/bin/sh\ntrap "" USR1\necho $$ >%s.pid\nexec %s/swapper <>%s.in >%s\n' "$T/$1" "$P" "$T/$1" "$T/$1" >"$T/$1.sh"
	chmod 755 "$T/$1.sh"
}
# launch_task NAME OPTION...: the swapper NAME as the task of srun, in the background. batch_task NAME OPTION... [-- WORD...]:
# in a script, behind WORDs. has_task NAME: once it is there; then JOB_NAME is its job, and what swap-lib.sh has works.
launch_task() {
	task_name=$1
	shift
	task_files "$task_name"
	$SRUN -J "$task_name" "$@" "$T/$task_name.sh" 2>"$T/$task_name.err" &
	eval "SRUN_$task_name=$!"
}
batch_task() {
	task_name=$1 task_options=
	shift
	task_files "$task_name"
	while [ $# != 0 ] && [ "$1" != -- ]; do
		task_options="$task_options $1"
		shift
	done
	[ $# = 0 ] || shift
	printf '#!/bin/sh\n#SBATCH -n1 --gres=sluice:1%s\nexec %s %s\n' "$task_options" "$*" "$T/$task_name.sh" >"$T/$task_name.job"
	sbatch --parsable -J "$task_name" -o "$T/$task_name.err" "$T/$task_name.job" >/dev/null || fail "sbatch of $task_name"
}
has_task() {
	until_true "${2:-40}" grep -q start "$T/$1" || {
		fail "$1 does not start: $(cat "$T/$1.err"): $(squeue -a -t all -o '%i %j %P %T %r'): $(tail -n 5 "$T/slurmctld.log" "$T"/slurmd.*.log)"
		finish
	}
	eval "PID_$1=$(cat "$T/$1.pid") JOB_$1=$(squeue -h -a -t all -o %i --name "$1" | sort -n | tail -n 1)"
}
task() {
	launch_task "$@"
	has_task "$1"
}
job_of() { eval "echo \$JOB_$1"; }
# Where the workload's memory is, as the driver says: bytes of the task's process.
on_gpu() { "$P/nvml-view" | sed -n "s/.*\"what\":\"process\",.*\"pid\":$(pid_of "$1"),\"bytes\":\([0-9]*\).*/\1/p"; }
has_left_gpu() { [ "$(on_gpu "$1")" -lt $((64 * MIB)) ]; }
# Its srun ends as the task does.
end_task() {
	echo exit >"$T/$1.in"
	eval "wait \$SRUN_$1"
	check "$1: status of srun" $? = 0
}
