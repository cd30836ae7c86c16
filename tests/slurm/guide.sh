#!/bin/sh
# The commands of docs/guide/slurm.md, as written there, on a Slurm that is configured as it says.
# shellcheck disable=SC2034,SC2154 # lib.sh and slurm-lib.sh share variables with it
export BOX='--gpus 2 --memory 1GiB'
export LIMIT=200
PAGE=$(cd "$(dirname "$0")/../../docs/guide" && pwd)/slurm.md
. "$(dirname "$0")/../system/lib.sh"
SLOTS=8
. "$(dirname "$0")/slurm-lib.sh"
config 'host_memory: 2GiB'
config "data_dir: $T/data"
daemon_start
# blocks LANGUAGE: one after the other, a line between them.
blocks() { awk -v open="\`\`\`$1" '/^```/ { inside = $0 == open; print ""; next } inside' "$PAGE"; }
# What is said of slurm.conf; nodes and plugin lie elsewhere here.
blocks conf | grep -E '^(GresTypes|RequeueExit|ProctrackType)=' >"$T/lines"
check "settings on the page" "$(wc -l <"$T/lines")" = 3
check_file "a node has as many slots as gres.conf says" "$PAGE" '^NodeName=n\[0-9\] Gres=sluice:8$'
check_file "and gres.conf" "$PAGE" '^NodeName=n\[0-9\] Name=sluice Count=8$'
slurm_start "$(cat "$T/lines")"

mkdir "$T/bin"
cat >"$T/bin/python" <<-END
	#!/bin/sh
	echo "\$1 \$SLUICE_WORKLOAD" >>$T/ran
	[ "\$1" = train.py ] && $B/sluice ps >>$T/ps
	[ ! -f $T/long ] || exec sleep 60
END
chmod 755 "$T/bin/python"
export PATH="$T/bin:$B:$PATH"
# The script of the page, with its first line.
blocks sh | awk '/^#!/ { inside = 1 } inside && !NF { exit } inside' >"$T/train.sh"
check_file "the page has a script" "$T/train.sh" '^srun python train.py$'

note "--- srun"
blocks sh | grep '^srun --gres' >"$T/commands"
check "commands" "$(wc -l <"$T/commands")" = 1
: >"$T/ran"
sh -e "$T/commands"
check "status" $? = 0
check_file "it ran" "$T/ran" '^train.py [0-9a-f]{32}$'
check_file "with its request and limit" "$T/ps" 'slurm-[0-9]+\.0 .* 240MiB +768MiB '

note "--- sbatch"
: >"$T/ran"
blocks sh | grep '^sbatch ' >"$T/commands"
check "commands" "$(wc -l <"$T/commands")" = 1
JOB=$(sh -e "$T/commands" | sed -n 's/^Submitted batch job //p')
export JOB
becomes "$JOB" COMPLETED
check "script and step ran" "$(cut -d' ' -f1 "$T/ran" | paste -sd ' ')" = "prepare.py train.py"
check "as one workload" "$(cut -d' ' -f2 "$T/ran" | sort -u | wc -l)" = 1

note "--- suspended and resumed"
: >"$T/long"
JOB=$(sh -e "$T/commands" | sed -n 's/^Submitted batch job //p')
until_true 20 has_workload "slurm-$JOB" || fail "the job has no workload"
for verb in suspend resume; do
	blocks sh | grep "^scontrol $verb " >"$T/command"
	sh -e "$T/command"
	check "scontrol $verb: status" $? = 0
	becomes "$JOB" "$([ $verb = suspend ] && echo SUSPENDED || echo RUNNING)"
	until_true 20 eval '[ "$(use "slurm-$JOB" residency)" '"$([ $verb = suspend ] || echo !)"'= parked ]' || fail "after $verb it is $(use "slurm-$JOB" residency)"
done

note "--- what Sluice says"
blocks sh | grep '^sluice ' | sed "s/slurm-17/slurm-$JOB/" >"$T/commands"
check "commands" "$(wc -l <"$T/commands")" = 3
sh -e "$T/commands" >"$T/said" 2>&1
ended=$?
check "status: $(tail -n 1 "$T/said")" $ended = 0
check_file "the job" "$T/said" " slurm-$JOB .*train.sh|slurm-$JOB "
scancel "$JOB"
check "nothing is left" "$(until_true 20 no_workload "slurm-$JOB" && echo nothing)" = nothing
finish
