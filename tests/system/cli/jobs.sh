#!/bin/sh
# submit, logs, wait, and what ps, stop and why say of jobs: what the daemon is told, what is shown, and daemons
# that refuse or go away in the middle.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

fake jobs 2>"$work/told"
told() { grep -v '^fake-daemon' "$work/told" | tail -n "${1:-1}"; }

# --- submit: what the daemon gets
umask 027
expect 'submit' 0 '^job2: queued as job 2; it waits: project research has its 2 GPUs$' \
	env T_A=1 "$sluice" submit --project research -- true a 'b c'
same 'submit: a whole GPU unless something is said' "$(told)" \
	'SUBMIT request=1:1000000 limit=0:0 warm=0 gpus=1 priority=0 flags=100 wait=0 tasks=1 least=0 retries=0 name= project=research command=true a b c visible=unset'
same 'submit: words, environment, folder' "$(told 6 | head -n 5)" "arg=true
arg=a
arg=b c
env=T_A=1
dir=$PWD umask=027"
expect 'submit: all of run' 0 '' "$sluice" submit --request 0.25 --limit 0.5 --gpus 2 --priority 3 --name n --swap off \
	--oom-first on --longest-wait 90s -- true
same 'submit: all of run' "$(told)" \
	'SUBMIT request=1:250000 limit=1:500000 warm=0 gpus=2 priority=3 flags=306 wait=90000 tasks=1 least=0 retries=0 name=n project=default command=true visible=unset'
expect 'submit: warm' 0 '' "$sluice" submit --warm-after 1s -- true
same 'submit: warm' "$(told | grep -o 'warm=[0-9]*\|flags=[0-9a-f]*' | tr '\n' ' ')" 'warm=1000 flags=100 '
expect 'submit: never warm' 0 '' "$sluice" submit --warm-after 0 -- true
same 'submit: never warm' "$(told | grep -o 'warm=[0-9]*\|flags=[0-9a-f]*' | tr '\n' ' ')" 'warm=0 flags=900 '
expect 'submit: a delay' 0 '' "$sluice" submit --preempt-delay 10m -- true
same 'submit: a delay' "$(told 9 | grep -o 'delay=.*')" 'delay=600000'
expect 'submit: too long a delay' 64 'preempt-delay' "$sluice" submit --preempt-delay 31d -- true
mkdir "$work/folder"
printf '#!/bin/sh\n' >"$work/folder/prog"
chmod 755 "$work/folder/prog"
expect 'submit: all of its own' 0 '' env T_B=2 T_C=3 "$sluice" submit --gang 4 --min 2 --preemptible no --on-reclaim terminate \
	--retries 5 --env T_A= --env T_B --env=T_C=x=y --dir "$work/folder" --limit 64MiB ./prog
same 'submit: all of its own' "$(told | cut -d' ' -f2-4,7-8,10-12)" \
	'request=0:0 limit=2:67108864 warm=0 flags=200 wait=0 least=2 retries=5 name=' ||
	told
same 'submit: gang' "$(told | cut -d' ' -f9)" 'tasks=4'
same 'submit: --env and --dir' "$(told 5 | head -n 4 | LC_ALL=C sort)" "dir=$work/folder umask=027
env=T_A=
env=T_B=2
env=T_C=x=y"
# What Sluice sets itself stays here; what the user set goes along.
expect 'submit: GPUs that are visible' 0 '' env CUDA_VISIBLE_DEVICES=1,2 CUDA_DEVICE_ORDER=PCI_BUS_ID "$sluice" submit true
same 'submit: GPUs that are visible' "$(told | sed 's/.*visible=//')" 'set:1,2'
same 'submit: are not in the environment' "$(told 3 | grep -c '^env=')" 0
expect 'submit: by a workload' 0 '' env CUDA_VISIBLE_DEVICES=1,2 SLUICE_WORKLOAD=x "$sluice" submit true
same 'submit: by a workload, to any GPU' "$(told | sed 's/.*visible=//')" 'unset'
expect 'submit: --env of GPUs' 0 '' "$sluice" submit --env CUDA_VISIBLE_DEVICES=0 true
same 'submit: --env of GPUs' "$(told | sed 's/.*visible=//')" 'set:0'
if [ -z "$is_sanitized" ]; then
	expect 'submit: preloaded' 0 '' env LD_PRELOAD="$by_loader:$work/mine.so $library" "$sluice" submit true
	same 'submit: without our library' "$(told 3 | grep '^env=')" "env=LD_PRELOAD=$work/mine.so"
	expect 'submit: preloaded alone' 0 '' env LD_PRELOAD="$library" "$sluice" submit true
	same 'submit: without our library, nothing' "$(told 3 | grep -c '^env=')" 0
fi

# --- submit: what is said
expect 'submit: --try' 0 '^n: it waits: project research has its 2 GPUs$' "$sluice" submit --try --name n true
same 'submit: --try' "$(told | cut -d' ' -f7)" 'flags=500'
expect 'submit: JSON' 0 '"state": "queued"' "$sluice" submit --json true
expect 'submit: --wait' 42 'broken\|failed: exit status 42$' "$sluice" submit --wait true
same 'submit: --wait' "$(told)" 'JOB_WAIT job=2'

# --- submit: mistakes
expect 'submit: nothing' 64 'no command' "$sluice" submit
expect 'submit: not found' 127 'surely-not-there' "$sluice" submit surely-not-there
expect 'submit: not found in the folder' 127 'prog' "$sluice" submit --dir / ./prog
expect 'submit: no such folder' 64 '^sluice submit: --dir /surely/not: No such file' "$sluice" submit --dir /surely/not true
expect 'submit: what cannot work' 64 'docker starts CMD in a container' env PATH="$work/folder:$PATH" sh -c "cp '$work/folder/prog' '$work/folder/docker'; '$sluice' submit docker run x"
expect 'submit: min' 64 'min 3 is above --gang 2' "$sluice" submit --gang 2 --min 3 true
expect 'submit: gang' 64 'gang 0 is not within 1 to 1024' "$sluice" submit --gang 0 true
expect 'submit: yes or no' 64 "preemptible 'on': write yes or no" "$sluice" submit --preemptible on true
expect 'submit: park or terminate' 64 "on-reclaim 'kill': write park or terminate" "$sluice" submit --on-reclaim kill true
expect 'submit: env without a name' 64 "env '=x' has no name" "$sluice" submit --env =x true
expect 'submit: env that is not here' 64 'env T_NOT_HERE: there is no such variable' "$sluice" submit --env T_NOT_HERE true
expect 'submit: env of Sluice' 64 'env SLUICE_WORKLOAD: Sluice sets it itself' "$sluice" submit --env SLUICE_WORKLOAD=x true
expect 'submit: parked without a place' 64 'with --swap off or --rdma it cannot be parked' "$sluice" submit --swap off --on-reclaim park true
expect 'submit: try and wait' 64 'give one of them' "$sluice" submit --try --wait true
expect 'submit: limit below request' 64 'limit 1GiB is below' "$sluice" submit --request 2GiB --limit 1GiB true
expect 'submit: an option misspelt' 64 'did you mean --on-reclaim' "$sluice" submit --onreclaim park true

# --- ps
expect 'ps: a job that waits' 0 '^ *1  *train  *research  *-  *7  *queued  *0.5  *0.5  *0  *-  *-  *-  *0 .* python3 train.py  *project research has its 2 GPUs?\[31m$' "$sluice" ps
same 'ps: a job that runs is there once' "$(grep -c ' a-model-server-1 ' "$work/out")" 1
same 'ps: one that is parked too' "$(grep -c ' nap' "$work/out")" 0
expect 'ps: why it is parked' 0 ' a-model-server-2 .*others have the GPUs$' "$sluice" ps
expect 'ps: a column of its own' 0 ' COMMAND  *WHY$' "$sluice" ps
for columns in 80 120; do
	for words in ps 'ps --all'; do
		# shellcheck disable=SC2086 # words are meant
		expect "$words at $columns" 0 '' env COLUMNS=$columns "$sluice" $words
		widest=$(awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }' "$work/out")
		[ "$widest" -le $columns ] || fail "$words at $columns is $widest wide"
	done
done
expect 'ps --jobs' 0 '^  *1  *train  *research  *7  *queued  *0/4  *1  *0.5  *[0-9]*d  *-  *-  *python3 train.py  *project' "$sluice" ps --jobs
same 'ps --jobs: not those that ended' "$(wc -l <"$work/out")" 4
expect 'ps --all' 0 '^  *5  *broken .* failed  *0/1  *1  *0.5  *[0-9]*d  *5m  *3  *python3 train.py  *it failed 3 times$' "$sluice" ps --all
same 'ps --all: exit statuses' "$(awk 'NR > 5 { print $11 }' "$work/out" | tr '\n' ' ')" '3 137 ? 143 1 '
expect 'ps: two lists' 64 'clients and --all are lists' "$sluice" ps --clients --all

# --- logs
expect 'logs' 0 'three' "$sluice" logs made
same 'logs' "$(cat "$work/out")" "one
two
three"
expect 'logs: by number' 0 'one' "$sluice" logs 4
for row in '0:' '1:three' '2:two three' '3:one two three' '9:one two three'; do
	run "$sluice" logs made --last "${row%%:*}"
	same "logs --last ${row%%:*}" "$(tr "\n" " " <"$work/out" | sed "s, $,,")" "${row#*:}"
done
expect 'logs -f: to its end' 0 'four' timeout 20 "$sluice" logs -f a-model-server-1
same 'logs -f: to its end' "$(tail -n 1 "$work/out")" 'four'
expect 'logs -f: of what is over' 0 'three' timeout 20 "$sluice" logs made --follow
expect 'logs: nothing yet' 75 'it has not started yet' "$sluice" logs train
expect 'logs -f: waits for the start' 124 '' timeout 1 "$sluice" logs -f train
expect 'logs: nobody' 64 'no NAME: say which job' "$sluice" logs
expect 'logs: unknown' 75 "there is no job 'trian'; did you mean 'train'?" "$sluice" logs trian
expect 'logs: unknown, and nothing like it' 75 "there is no job 'xyz'; see: sluice ps --all" "$sluice" logs xyz
expect 'logs: no workload' 75 "there is no job 'a-model-server-0'; did you mean 'a-model-server-1'?" "$sluice" logs a-model-server-0

# --- wait
expect 'wait: one of one name each' 1 '' "$sluice" wait 4 made
expect 'wait: the last of one name' 1 '' "$sluice" wait made
expect 'wait: done' 0 '^made is done$' "$sluice" wait 4
expect 'wait: failed' 3 '' "$sluice" wait 4 broken killed
same 'wait: in order' "$(cat "$work/out")" "made is done
broken failed: exit status 3
killed failed: killed by signal 9 (Killed)"
expect 'wait: killed' 137 '' "$sluice" wait killed broken
expect 'wait: stopped in the queue' 143 '' "$sluice" wait cancelled
expect 'wait: not known' 1 '' "$sluice" wait unseen
same 'wait: not known' "$(cat "$work/out")" 'unseen failed; its exit status is not known'
expect 'wait: too long' 124 'job 1 has not ended after 300ms; it goes on$' "$sluice" wait --timeout 300ms 4 train
expect 'wait: options behind names' 124 'job 1 has not ended after 300ms; it goes on$' "$sluice" wait 4 train --timeout 300ms
expect 'wait: nobody' 64 'no NAME' "$sluice" wait
expect 'wait: unknown' 75 "no job 'brokn'; did you mean 'broken'" "$sluice" wait 4 brokn
expect 'wait: JSON' 3 '' "$sluice" wait --json 4 broken

# --- stop
expect 'stop: queued' 0 '^train: job 1 is out of the queue$' "$sluice" stop train
same 'stop: queued' "$(told)" 'JOB_STOP job=1 grace=4294967295'
expect 'stop: running' 0 '^a-model-server-1: SIGTERM to 1 process, and SIGKILL after 1500ms$' "$sluice" stop a-model-server-1 --grace 1500ms
same 'stop: running, as a job' "$(told)" 'JOB_STOP job=2 grace=1500'
expect 'stop: a workload' 0 '^a-model-server-0: SIGTERM to 2 processes' "$sluice" stop a-model-server-0
expect 'stop: a number' 0 '^train: job 1 is out of the queue$' "$sluice" stop 1
expect 'stop: a number of one' 0 '' "$sluice" stop 2
same 'stop: a number of one' "$(told)" 'JOB_STOP job=2 grace=4294967295'
expect 'stop: ended' 0 '^broken has ended already$' "$sluice" stop broken
expect 'stop: several, and one of them unknown' 75 "there is no workload 'trian'" "$sluice" stop broken trian train
same 'stop: the others' "$(tail -n 2 "$work/out")" "broken has ended already
train: job 1 is out of the queue"
expect 'stop: JSON' 0 '"job": 1' "$sluice" stop train --json
expect 'stop: unknown' 75 "there is no workload 'trian'; did you mean 'train'?" "$sluice" stop trian

# --- set, park and resume: what runs
for verb in 'set --limit 0.5' park resume; do
	# shellcheck disable=SC2086 # words
	expect "$verb: queued" 75 "^sluice ${verb%% *}: job 1 (train) is queued, and sluice ${verb%% *} needs a running workload: sluice why train says what it waits for; to change the job, sluice stop train and submit it again$" \
		"$sluice" $verb train
done
expect 'park: a task that waits' 75 '^sluice park: task train.3 of job 1 does not run, .* sluice why train.3 ' "$sluice" park train.3
expect 'park: no such task' 75 "there is no workload 'train.4'" "$sluice" park train.4
expect 'park: ended' 0 '^broken has ended already$' "$sluice" park broken
expect 'resume: ended, as JSON' 0 '"text": "broken has ended already"' "$sluice" resume broken --json
expect 'set: ended' 75 '^sluice set: job 5 (broken) has ended: sluice why broken says how$' "$sluice" set broken --limit 0.5
expect 'set: a job of one task is its workload' 0 '^a-model-server-2: ' "$sluice" set nap --limit 0.5
expect 'set: nobody' 75 "there is no workload 'xyz'; see: sluice ps$" "$sluice" set xyz --limit 0.5

# --- why
expect 'why: queued' 0 '^train: job 1 is queued, submitted [0-9]*d ago; project research has its 2 GPUs?\[31m; it starts when one is free$' "$sluice" why train
expect 'why: a task that waits' 0 '^train: job 1 is queued, ' "$sluice" why train.2
expect 'why: no such task' 75 "there is no workload 'train.4'" "$sluice" why train.4
expect 'why: running' 0 'a-model-server-1 runs on GPU 1: .* nothing is in its way\.$' "$sluice" why a-model-server-1
expect 'why: parked' 0 '^nap: job 3 is parked, submitted [0-9]*d ago; others have the GPUs' "$sluice" why nap
expect 'why: ended' 0 '^broken: job 5 failed: exit status 3, after 5m; it failed 3 times; sluice logs broken shows its output$' "$sluice" why broken
expect 'why: JSON' 0 '"in_its_way": true' "$sluice" why train --json

if command -v python3 >/dev/null; then
	json() { python3 -c "import json, sys; d = json.load(open('$work/out')); print($1)"; }
	run "$sluice" ps --json
	same 'ps --json' "$(json '[(r["job"], r["name"], r["workload"], r["state"]) for r in d]')" \
		"[(None, 'a-model-server-0', 1, 'reserved'), (2, 'a-model-server-1', 2, 'bound'), (3, 'a-model-server-2', 3, 'waiting'), (1, 'train', None, 'queued')]"
	run "$sluice" ps --all --json
	same 'ps --all --json' "$(json '[(r["job"], r["state"], r["exit_status"]) for r in d]')" \
		"[(1, 'queued', None), (2, 'running', None), (3, 'parked', None), (4, 'done', 0), (5, 'failed', 3), (6, 'failed', 137), (7, 'failed', None), (8, 'stopped', 0), (9, 'failed', 1)]"
	same 'ps --all --json: the rest' "$(json 'd[0]["tasks"], d[0]["request"], d[0]["limit"], d[0]["started_ms"], d[4]["ran_ms"], d[0]["on_reclaim"], d[0]["why"]')" \
		"4 0.5 None None 300000 park $(printf 'project research has its 2 GPUs\033[31m; it starts when one is free')"
	run "$sluice" wait --json 4 broken
	same 'wait --json' "$(json '[(r["job"], r["state"], r["exit"]) for r in d]')" "[(4, 'done', 0), (5, 'failed', 3)]"
	run "$sluice" submit --json --try true
	same 'submit --json' "$(json 'd["ok"], d["try"], d["job"], d["text"][:9]')" "True True 0 it waits:"
	run "$sluice" why train --json
	same 'why --json' "$(json 'd["name"], d["ended"], d["job"]["queued"], d["residency"]')" "train False 4 None"
	run "$sluice" why a-model-server-1 --json
	same 'why --json: a workload of a job' "$(json 'd["workload"], d["in_its_way"], d["job"]["job"]')" "2 False 2"
fi

# --- an interruption leaves the job, and says how to stop it
# What the queue parked comes back by itself, also where it is named as the workload that it is.
fake jobs-parked
expect 'why: a workload that the queue parked' 0 'a-model-server-2 is parked on GPU 9: .*; it comes back by itself when its GPUs are free\.$' "$sluice" why a-model-server-2
expect 'why: one that a person parked' 0 'a-model-server-0 is parked on GPU 0: .*; `sluice resume` brings it back\.$' "$sluice" why a-model-server-0

fake jobs-more 2>"$work/more"
"$sluice" submit --wait --name train true >"$work/out" 2>"$work/err" &
pid=$!
tries=0
until grep -q '^JOB_WAIT' "$work/more"; do
	tries=$((tries + 1))
	[ $tries -gt 1000 ] && { fail 'submit --wait does not wait'; break; }
	sleep 0.02
done
kill -TERM $pid
wait $pid 2>/dev/null
same 'submit --wait: interrupted' $? 143
same 'submit --wait: says what goes on' "$(cat "$work/err")" \
	'sluice submit: interrupted; train stays queued or runs on. To stop it: sluice stop train'

# --- a daemon that is restarted in the middle
fake jobs-restart 2>"$work/restart"
expect 'wait: outlives the daemon' 3 '' timeout 20 "$sluice" wait broken
same 'wait: says that it waits for the daemon' "$(cat "$work/err")" \
	'sluice wait: the daemon went away; jobs go on without it. Waiting for it to come back'
expect 'submit --wait: outlives the daemon' 42 'the daemon went away' timeout 20 "$sluice" submit --wait true

# --- a daemon that refuses
fake jobs-refuse
expect 'submit: refused' 75 '^sluice submit: refused: no GPU has?\[2J 64 GiB; ask for less$' "$sluice" submit --gpus 9 true
expect 'submit: refused, as JSON' 75 '^{"ok": false, "exit": 75, "error": "refused: no GPU has' "$sluice" submit --json true
expect 'stop: refused' 75 'refused: it has ended' "$sluice" stop train

SLUICE_SOCKET=$work/none.sock
expect 'no daemon: submit' 69 'no daemon answers' "$sluice" submit true
expect 'no daemon: wait' 69 'no daemon answers' "$sluice" wait x
finish
