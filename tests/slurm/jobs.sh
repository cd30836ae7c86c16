#!/bin/sh
# Jobs of Slurm are workloads: by srun, sbatch and salloc, of users, on two nodes; and what cannot be is refused.
# shellcheck disable=SC2034,SC2154 # lib.sh and slurm-lib.sh share variables with it
export BOX='--gpus 2 --memory 1GiB'
export LIMIT=300 NODES=2
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/../system/swap-lib.sh"
. "$(dirname "$0")/slurm-lib.sh"
config 'host_memory: 2GiB'
daemon_start
slurm_start RequeueExit=75 PrologFlags=Alloc

note "--- installed as the packages are, with a folder for libraries that this build does not know"
"$SLURM_TOOLS/../packaging/stage" "$B" "$T/staged" /usr lib/any || fail "it cannot be installed"
(PLUGIN=$T/staged/usr/lib/any/slurm/spank_sluice.so && plug)
$SRUN --sluice-request=0.25 sh -c 'echo "$LD_PRELOAD"' >"$T/installed" 2>&1
check "status" $? = 0
check_file "with the library that was installed with it" "$T/installed" "^$T/staged/usr/lib/any/sluice/"
plug

note "--- srun"
task one --sluice-request=0.25 --sluice-limit=0.8
name=slurm-$JOB_one.0
check "it is a workload" "$(use "$name" state)" = bound
check_file "its command is the step's" "$("$B/sluice" ps >"$T/ps" && echo "$T/ps")" " $name .*/one.sh"
check "its request" "$(use "$name" request_bytes)" = $((240 * MIB))
check "its limit" "$(use "$name" limit_bytes)" = $((768 * MIB))
ok one alloc a 500m
ok one fill a 1
tell one alloc b 300m
check "above the limit" "$RESULT" = CUDA_ERROR_OUT_OF_MEMORY
tell one info
check "the program sees its limit" "$(echo "$ANSWER" | json total)" = $((768 * MIB))
contents one
note "--- another beside it, within what is left"
task two --sluice-request=0.25 --sluice-gpus=2
check "on both GPUs" "$("$B/sluice" ps | grep -c " slurm-$JOB_two\\.0 ")" = 2
end_task two
end_task one
check "its end is the workload's" "$(until_true 10 no_workload "$name" && echo over)" = over
check_books_empty

note "--- what a job used is in Slurm's accounting"
plug account
task one --sluice-request=0.25 --sluice-limit=0.8
ok one alloc a 500m
recorded() { [ "$("$B/sluice" history --by workload --name "slurm-$JOB_one.0" --json | json totals.0.most_bytes)" -ge $((500 * MIB)) ] 2>/dev/null; }
until_true 30 recorded || fail "its history: $("$B/sluice" history --by workload)"
end_task one
scontrol show job "$JOB_one" >"$T/show"
check_file "of a step" "$T/show" 'AdminComment=sluice: allocated=[0-9.]+s used=[0-9.]+s most=5[0-9][0-9]M waited=0.0s'
printf '#!/bin/sh\n#SBATCH -n1 --gres=sluice:1 --sluice-request=0.25 -o %s\nsrun sleep 4\n' "$T/batch" >"$T/job"
job=$(sbatch --parsable "$T/job")
becomes "$job" COMPLETED
scontrol show job "$job" | grep AdminComment >"$T/show"
check_file "of a script: its request while it lasted" "$T/show" 'AdminComment=sluice: allocated=(0\.[1-9]|[1-9]).*s '
printf '#!/bin/sh\n#SBATCH -n1 --array=0-1 --gres=sluice:1 --sluice-request=0.1 -o /dev/null\n[ $SLURM_ARRAY_TASK_ID = 1 ] || exec sleep 60\nsleep 2\n' >"$T/job"
job=$(sbatch --parsable "$T/job")
has_account() { scontrol show job "$1" | grep -q 'AdminComment=sluice:'; }
until_true 40 has_account "${job}_1" || fail "of a task of an array: $(scontrol show job "${job}_1")"
check "of no other task" "$(has_account "${job}_0" || echo none)" = none
scancel "$job"
plug

note "--- several tasks of a step are one workload"
cat >"$T/tell" <<-'END'
	echo "$SLUICE_WORKLOAD $CUDA_VISIBLE_DEVICES $SLUICE_SOCKET"
END
srun -n4 -N1 --gres=sluice:1 --sluice-request=0.5 sh "$T/tell" >"$T/tasks"
check "status" $? = 0
check "tasks" "$(wc -l <"$T/tasks")" = 4
check "with one workload" "$(sort -u "$T/tasks" | wc -l)" = 1
check_file "which is named to them" "$T/tasks" "^[0-9a-f]{32} [01] $T/s\$"
note "--- on each node one"
srun -n2 -N2 --gres=sluice:1 --sluice-request=0.5 sh -c "sh $T/tell; sleep 1; $B/sluice ps" >"$T/nodes"
check "with a workload each" "$(grep -cE '^[0-9a-f]{32} ' "$T/nodes") $(grep -oE '^[0-9a-f]{32} ' "$T/nodes" | sort -u | wc -l)" = "2 2"
check_file "the first node's" "$T/nodes" ' slurm-[0-9]+\.0 '
check_file "the second node's" "$T/nodes" ' slurm-[0-9]+\.0-1 '

note "--- sbatch: its steps are the script's workload"
cat >"$T/job" <<-END
	#!/bin/sh
	#SBATCH --sluice-request=0.25
	#SBATCH --sluice-limit=0.5
	#SBATCH -n2 -N1 --gres=sluice:1 -o $T/batch
	sh $T/tell
	srun -n1 sh $T/tell
	srun -n2 --sluice-request=0.5 sh -c 'sh $T/tell; [ \$SLURM_PROCID = 1 ] || $B/sluice ps'
	exit 3
END
job=$(sbatch --parsable "$T/job")
becomes "$job" FAILED
check_file "its status is the script's" "$(scontrol show job "$job" >"$T/show" && echo "$T/show")" 'ExitCode=3:0'
check "script and step are one" "$(grep -oE '^[0-9a-f]{32}' "$T/batch" | head -n 2 | sort -u | wc -l)" = 1
check "a step that asks for something else is another" "$(grep -oE '^[0-9a-f]{32}' "$T/batch" | sort -u | wc -l)" = 2
check_file "the script's" "$T/batch" " slurm-$job .*240MiB"
check_file "the step's" "$T/batch" " slurm-$job\\.1 .*480MiB"
note "--- what a job starts asks for itself"
printf '#!/bin/sh\n#SBATCH -n1 --gres=sluice:1 --sluice-request=0.9 -o %s\n%s ps\n' "$T/inner" "$B/sluice" >"$T/inner.job"
printf '#!/bin/sh\n#SBATCH -n1 -o %s\nenv\n' "$T/bare" >"$T/bare.job"
cat >"$T/job" <<-END
	#!/bin/sh
	#SBATCH -n1 --gres=sluice:1 --sluice-request=0.25 --sluice-limit=0.5 -o $T/batch
	sh $T/tell
	srun -n1 --sluice-request=0.9 --sluice-limit=1.0 sh $T/tell
	sbatch --wait $T/inner.job
	sbatch --wait $T/bare.job
END
job=$(sbatch --parsable "$T/job")
becomes "$job" COMPLETED 60
check "a step for which its script's GPU has no room goes to the other" "$(grep -oE '^[0-9a-f]{32} [01]' "$T/batch" | cut -d' ' -f2 | sort -u | wc -l)" = 2
check_file "a job that it submits has its own request" "$T/inner" ' slurm-[0-9]+ .*864MiB'
check "or none" "$(grep -cE 'SLUICE_(WORKLOAD|STEP|SOCKET)|LD_PRELOAD|CUDA_VISIBLE' "$T/bare")" = 0
note "--- salloc"
salloc -Q -n1 --gres=sluice:1 --sluice-request=0.25 srun -n1 sh -c "$B/sluice ps" >"$T/salloc" 2>&1
check_file "its step is a workload" "$T/salloc" ' slurm-[0-9]+\.0 .*240MiB'
note "--- a job that does not ask for Sluice is none"
srun -n1 sh -c "env; $B/sluice ps" >"$T/none"
check "nothing of it" "$(grep -cE 'SLUICE_WORKLOAD|LD_PRELOAD| slurm-' "$T/none")" = 0

note "--- the job of a user is a workload of the user"
if setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$B/sluice"; then
	as() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/ "$@"; }
	as $SRUN -D / --sluice-request=0.25 sh -c "id -u; $B/sluice ps --json" >"$T/user" 2>"$T/user.err"
	ended=$?
	check "status: $(cat "$T/user.err")" $ended = 0
	check "as the user" "$(sed -n 1p "$T/user")" = 65534
	check_file "and so is the workload" "$T/user" '"uid": 65534'
	as srun -n1 --sluice-request=0.25 -D / sh -c 'for p in /proc/[0-9]*; do grep -qs ^sluice-slurm $p/cmdline && grep -H ^Uid $p/status; done' >"$T/uids"
	check_file "the keeper, too" "$T/uids" 'Uid:	65534	65534	65534	65534'
	as srun -n1 --sluice-request=0.25 -D / sh -c 'for p in /proc/[0-9]*; do grep -qsz ^--porter $p/cmdline && for s in CONT TSTP KILL; do kill -$s ${p#/proc/} && echo sent; done; done' >"$T/sent" 2>&1
	check_file "it has no signal for the porter, which is root" "$T/sent" 'not permitted'
	check "none at all" "$(grep -c sent "$T/sent")" = 0
fi

printf '#!/bin/sh\ntrue\n' >"$T/true.sh"
chmod 755 "$T/true.sh"
note "--- what cannot be is refused where it is said"
for bad in request=8 request=x limit=1.5 gpus=0 gpus=x; do
	for verb in srun sbatch salloc; do
		$verb --sluice-$bad "$T/true.sh" >"$T/bad" 2>&1
		check "$verb --sluice-$bad: status" $? != 0
		check_file "why" "$T/bad" "error: --sluice-${bad%=*}: '"
	done
done
srun --sluice-request=0.5 --sluice-limit=0.25 true >"$T/bad" 2>&1
check_file "a limit below the request" "$T/bad" '[-][-]limit 0.25 is below --request 0.5'
check "none of them became a job" "$(squeue -h | wc -l)" = 0
$SRUN --sluice-request=64GiB true >"$T/bad" 2>&1
check "more than there is: status" $? = 75
check_file "why" "$T/bad" 'request of 64 GiB'

note "--- no room: it waits for a while, then Slurm may try again"
task one --sluice-request=0.7
task two --sluice-request=0.7
launch_task three --sluice-request=0.5
until_true 20 grep -q waits "$T/three.err" || fail "it does not wait: $(cat "$T/three.err")"
check_file "it says so" "$T/three.err" 'slurm-[0-9]+.0 waits: it wants 0.5 GPUs'
check "it does not run" "$(grep -c start "$T/three")" = 0
end_task two
until_true 20 grep -q start "$T/three" || fail "it does not start: $(cat "$T/three.err")"
end_task three
task two --sluice-request=0.7
plug wait=1
cat >"$T/job" <<-END
	#!/bin/sh
	#SBATCH --sluice-request=0.5 --requeue -n1 --gres=sluice:1 -o $T/batch
	echo ran
END
job=$(sbatch --parsable "$T/job")
requeued() { scontrol show job "$job" | grep -q 'Restarts=[1-9]'; }
until_true 30 requeued || fail "it is not requeued: $(scontrol show job "$job")"
check_file "why" "$T/batch" "slurm-$job did not get its GPU memory within 1 s"
end_task two
# It may have begun again already, and waits for a moment. Slurm refuses to launch a job that it has just killed.
sleep 2
scontrol update JobId="$job" StartTime=now 2>/dev/null
becomes "$job" COMPLETED 40
check_file "it ran" "$T/batch" '^ran$'
note "--- a job that waits can be cancelled"
plug
task two --sluice-request=0.7
launch_task three --sluice-request=0.5
until_true 20 grep -q waits "$T/three.err"
scancel --name three
wait "$SRUN_three"
check "status" $? != 0
until_true 10 no_workload "slurm-three" && [ "$("$B/sluice" ps | grep -c waiting)" = 0 ] || fail "it waits on: $("$B/sluice" ps)"
end_task two
end_task one
check_books_empty
check "no workload is left" "$(workloads)" = 0
finish
