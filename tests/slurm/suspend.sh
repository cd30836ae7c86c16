#!/bin/sh
# Suspended by Slurm is parked by Sluice: by scontrol, by preemption and by turns (GANG). Judged by the driver.
# shellcheck disable=SC2034,SC2154 # lib.sh and slurm-lib.sh share variables with it
export BOX='--gpus 1 --memory 512MiB'
export LIMIT=400
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/../system/swap-lib.sh"
. "$(dirname "$0")/slurm-lib.sh"
config 'host_memory: 2GiB'
daemon_start
slurm_start PreemptType=preempt/partition_prio PreemptMode=SUSPEND,GANG SchedulerTimeSlice=5 \
	"PartitionName=low Nodes=ALL Default=YES PriorityTier=1 OverSubscribe=FORCE:1 State=UP" \
	"PartitionName=scrap Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE OverSubscribe=FORCE:1" \
	"PartitionName=high Nodes=ALL PriorityTier=2 OverSubscribe=FORCE:1" \
	"PartitionName=turns Nodes=ALL PriorityTier=1 OverSubscribe=FORCE:2"
SWAPPER_PATIENCE=60

# The cgroup in which Slurm freezes the task.
frozen() { [ "$(cat "/sys/fs/cgroup/freezer$(sed -n 's/.*:freezer://p' "/proc/$(pid_of "$1")/cgroup")/freezer.state")" = FROZEN ]; }
is_off() { until_true "${2:-60}" has_left_gpu "$1" || fail "the memory of $1 stays on the GPU: $(on_gpu "$1"): $("$B/sluice" why "slurm-$(job_of "$1").0")"; }

note "--- suspended: its memory leaves, and it stands still"
task one --sluice-request=0.6 --sluice-limit=1
ok one alloc a 150m
ok one fill a 3
check "on the GPU: bytes" "$(on_gpu one)" -gt $((150 * MIB))
scontrol suspend "$JOB_one"
becomes "$JOB_one" SUSPENDED
is_off one
settled "slurm-$JOB_one.0" parked
check "it stands still" "$(until_true 10 frozen one && echo frozen)" = frozen
sleep 1
check "and goes on standing" "$(frozen one && echo frozen)" = frozen
note "--- also if that takes longer than Slurm waits: a kernel that runs for 4 s comes first"
note "--- and whatever signals the user has sent before, and sends meanwhile"
scontrol resume "$JOB_one"
settled "slurm-$JOB_one.0" bound
scancel -s USR1 "$JOB_one"
scancel -s CONT "$JOB_one"
later one busy 4000
sleep 0.3
keeper=$(keeper one)
check "the keeper is there" "$([ -n "$keeper" ] && kill -0 "$keeper" && echo there)" = there
scontrol suspend "$JOB_one"
while [ ! -e "$T/quiet" ] && sleep 0.1; do
	kill -CONT "$keeper"
done &
is_off one
settled "slurm-$JOB_one.0" parked
touch "$T/quiet"
wait $!
check "it stands still" "$(until_true 10 frozen one && echo frozen)" = frozen
note "--- its request is another's"
task two --sluice-request=0.6
ok two alloc b 250m
ok two fill b 4
contents two
note "--- resumed: it waits until there is room"
scontrol resume "$JOB_one"
becomes "$JOB_one" RUNNING
check "it runs" "$(until_true 10 eval '! frozen one' && echo runs)" = runs
check "but its memory waits" "$(has_left_gpu one && echo away)" = away
end_task two
settled "slurm-$JOB_one.0" bound
contents one "after it was suspended"
check "on the GPU: bytes" "$(on_gpu one)" -gt $((150 * MIB))

note "--- suspended and resumed at any moment"
# slurmd takes requests that wait for one another in any order, and a suspension takes it 2 s.
for pause in 0 1 2 2.3 2.6; do
	scontrol suspend "$JOB_one"
	sleep $pause
	scontrol resume "$JOB_one"
	sleep 2.5
done
becomes "$JOB_one" RUNNING
check "it runs" "$(until_true 20 eval '! frozen one' && echo runs)" = runs
settled "slurm-$JOB_one.0" bound
contents one "after all that"
note "--- cancelled while it is suspended"
scontrol suspend "$JOB_one"
sleep 2.3
scancel "$JOB_one"
wait "$SRUN_one"
check "it is over" "$(until_true 20 no_workload "slurm-$JOB_one.0" && echo over)" = over
check_books_empty

note "--- a script's step has the memory"
batch_task step -c8 --sluice-request=0.6 -- srun -c8
has_task step
ok step alloc a 150m
ok step fill a 5
scontrol suspend "$JOB_step"
is_off step
check "it stands still" "$(until_true 10 frozen step && echo frozen)" = frozen
scontrol resume "$JOB_step"
settled "slurm-$JOB_step" bound
contents step
echo exit >"$T/step.in"
check "its end" "$(until_true 20 no_workload "slurm-$JOB_step" && echo over)" = over
note "--- a job of higher priority suspends another"
batch_task lower -c8 --sluice-request=0.6 -- srun -c8
has_task lower
ok lower alloc a 150m
ok lower fill a 5
task urgent -p high -c8 --sluice-request=0.6
ok urgent alloc b 250m
ok urgent fill b 6
becomes "$JOB_lower" SUSPENDED
check "its memory has left" "$(has_left_gpu lower && echo away)" = away
contents urgent
end_task urgent
becomes "$JOB_lower" RUNNING
settled "slurm-$JOB_lower" bound
contents lower "after the other"
echo exit >"$T/lower.in"
check "its end" "$(until_true 20 no_workload "slurm-$JOB_lower" && echo over)" = over

note "--- a job of higher priority requeues another: at once nothing of it is left"
batch_task scrap --requeue -p scrap -c8 --sluice-request=0.6
has_task scrap
task urgent -p high -c8 --sluice-request=0.6
check "it is requeued" "$(scontrol show job "$JOB_scrap" | grep -c 'Restarts=1')" = 1
check "and gone" "$(no_workload "slurm-$JOB_scrap" && echo gone)" = gone
scancel "$JOB_scrap"
end_task urgent

note "--- in turns"
# The second is suspended as soon as it is there.
batch_task left -p turns -c8 --sluice-request=0.6
batch_task right -p turns -c8 --sluice-request=0.6
for name in left right; do
	has_task $name 60
	ok "$name" alloc a 250m
	ok "$name" fill a 8
done
# With both on it the GPU would be full.
for name in left right left; do
	other=left
	[ $name = left ] && other=right
	becomes "$(job_of $name)" RUNNING 60
	contents $name "in its turn"
	becomes "$(job_of $other)" RUNNING 60
	contents $other "in its turn"
done
scancel "$JOB_left" "$JOB_right"
check_books_empty
finish
