#!/bin/sh
# A daemon of Slurm or Sluice that ends, at each stage of a job: the job goes on, and nothing of an ended one is left.
# shellcheck disable=SC2034,SC2154 # lib.sh and slurm-lib.sh share variables with it
export BOX='--gpus 1 --memory 512MiB'
export LIMIT=300
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/../system/swap-lib.sh"
. "$(dirname "$0")/slurm-lib.sh"
config 'host_memory: 2GiB'
config 'measure_interval: 200ms'
slurm_start
SWAPPER_PATIENCE=60

note "--- no sluiced: the step fails, and says so"
$SRUN --sluice-request=0.5 true >"$T/none" 2>&1
check "status" $? = 69
check_file "why" "$T/none" "no daemon answers at $T/s"
plug without
$SRUN --sluice-request=0.5 sh -c 'echo "preload:$LD_PRELOAD"' >"$T/none" 2>&1
check "with 'without': status" $? = 0
check_file "it runs" "$T/none" '^preload:$'
check_file "and is told" "$T/none" 'the step runs without Sluice'
plug keeper="$T/nothing"
$SRUN --sluice-request=0.5 true >"$T/none" 2>&1
check "no keeper: status" $? = 70
check_file "why" "$T/none" 'cannot execute the keeper'
plug nonsense
srun true >"$T/none" 2>&1
check "a wrong word in plugstack.conf: status" $? != 0
check_file "why" "$T/none" "does not know 'nonsense'"
plug wait=1m
srun true >"$T/none" 2>&1
check "a wrong number in plugstack.conf: status" $? != 0
check_file "why" "$T/none" "wait= takes seconds, 0 to 86400, not '1m'"
plug
srun -n1 true
check "a job without Sluice needs no sluiced" $? = 0

daemon_start
note "--- sluiced is stopped before a launch: the step waits, and can be cancelled"
kill -STOP "$DAEMON"
launch_task one --sluice-request=0.25
sleep 1
scancel --name one
wait "$SRUN_one"
check "status" $? != 0
kill -CONT "$DAEMON"
check "nothing is left" "$(until_true 10 eval '[ "$(workloads)" = 0 ]' && echo nothing)" = nothing

note "--- sluiced is killed while a step runs, and while it is suspended"
task one --sluice-request=0.5 --sluice-limit=1
ok one alloc a 100m
ok one fill a 1
daemon_kill
daemon_start
check "it knows the step" "$(until_true 10 has_workload "slurm-$JOB_one.0" && echo known)" = known
contents one "after a restart"
scontrol suspend "$JOB_one"
settled "slurm-$JOB_one.0" parked
daemon_kill
daemon_start
settled "slurm-$JOB_one.0" parked
check "its memory is away" "$(until_true 20 has_left_gpu one && echo away)" = away
daemon_kill
scontrol resume "$JOB_one"
sleep 1
daemon_start
settled "slurm-$JOB_one.0" bound
contents one "resumed while there was no daemon"
daemon_kill
scontrol suspend "$JOB_one"
sleep 3
daemon_start
settled "slurm-$JOB_one.0" parked
until_true 30 has_left_gpu one || fail "suspended while there was no daemon, it stays: $(on_gpu one)"
scontrol resume "$JOB_one"
settled "slurm-$JOB_one.0" bound
contents one "after that, too"

note "--- the host has no room for it when it is suspended: it leaves once there is some"
daemon_kill
sed -i 's/^host_memory: .*/host_memory: 224MiB/' "$CONFIG"
daemon_start
swapper fat --request 0.1 --limit 1
ok fat alloc b 150m
park fat
scontrol suspend "$JOB_one"
check "refused" "$(until_true 20 grep -q "did not park slurm-$JOB_one" "$T/daemon.log" && echo refused)" = refused
sleep 3
check "it stays" "$(has_left_gpu one || echo stays)" = stays
echo exit >"$T/fat.in"
settled "slurm-$JOB_one.0" parked
check "its memory is away" "$(until_true 20 has_left_gpu one && echo away)" = away
scontrol resume "$JOB_one"
settled "slurm-$JOB_one.0" bound
contents one "after it had to wait"

note "--- slurmd and slurmctld are killed while it runs; it ends without them"
slurm_kill slurmd0
slurm_kill slurmctld
contents one "without slurmd and slurmctld"
echo exit >"$T/one.in"
check "its end is the workload's" "$(until_true 20 no_workload "slurm-$JOB_one.0" && echo over)" = over
kill -KILL "$SRUN_one" 2>/dev/null
slurmctld_start
slurmd_start 0
until_true 60 idle_nodes || fail "Slurm does not come back: $(tail -n 3 "$T/slurmctld.log")"
check_books_empty

note "--- slurmd is killed, and a new one cancels"
task two --sluice-request=0.5
ok two alloc a 100m
slurm_kill slurmd0
sleep 0.5
slurmd_start 0
until_true 30 scancel --name two
check "it is over" "$(until_true 60 no_workload "slurm-$JOB_two.0" && echo over)" = over
until_true 60 idle_nodes || fail "the node is not idle again: $(sinfo)"

note "--- sluiced is killed, and the job ends while there is none"
task three --sluice-request=0.5
daemon_kill
end_task three
daemon_start
check "nothing is left" "$(until_true 10 eval '[ "$(workloads)" = 0 ]' && echo nothing)" = nothing

note "--- the keeper or slurmstepd is killed"
task four --sluice-request=0.5
ok four alloc a 100m
kill -KILL "$(keeper four)"
sleep 0.5
check "without its keeper the workload lives on" "$(has_workload "slurm-$JOB_four.0" && echo lives)" = lives
contents four "without its keeper"
end_task four
check "and ends with its last process" "$(until_true 10 no_workload "slurm-$JOB_four.0" && echo over)" = over
task five --sluice-request=0.5
stepd=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$PID_five/status")
kill -KILL "$stepd"
until_true 5 no_workload "slurm-$JOB_five.0" || kill -KILL "$PID_five"
check "without slurmstepd nothing is left" "$(until_true 20 no_workload "slurm-$JOB_five.0" && echo nothing)" = nothing
scancel --name five
check_books_empty
finish
