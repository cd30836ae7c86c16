#!/bin/sh
# simulate --projects: quotas, reclaim and waits that are known exactly, files that are wrong, and that the same question has
# the same answer.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

nodes=$work/nodes.csv jobs=$work/jobs.csv lab=$work/lab.yaml
cat >"$nodes" <<'END'
sn,cpu_milli,memory_mib,gpu,model,pool
a,64000,262144,4,A100,big
END
cat >"$lab" <<'END'
projects:
  red:
    gpu: {quota: 2}
  blue:
    gpu: {quota: 2}
    users: [ann, bob]
END
# red alone takes all 4 GPUs; after 10 s blue wants 2.
cat >"$jobs" <<'END'
name,project,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,duration,swap_cost,on_reclaim
r1,red,1000,1024,1,1000,100,100,5,
r2,red,1000,1024,1,1000,100,100,5,
r3,red,1000,1024,1,1000,100,100,5,
r4,red,1000,1024,1,1000,100,100,5,
b1,blue,1000,1024,1,1000,110,50,5,
b2,blue,1000,1024,1,1000,110,50,5,
END
simulate() { "$sluice" simulate --nodes "$nodes" --jobs "$jobs" --projects "$lab" "$@"; }
# The value of the first member of that name in the JSON that was printed last, behind a line with $2.
member() {
	from=${2-}
	printf '%s\n' "$out" | sed -n "/${from:-.}/,\$s/^ *\"$1\": \([-a-z0-9.\"]*\),*\$/\1/p" | head -n 1
}
# member NAME WANTED [BEHIND]
is() { same "$case: ${3-} $1" "$(member "$1" "${3-}")" "$2"; }

# --- Parked: two of red give way from 10 s to 15 s, and come back when blue has ended, at 65 s; that takes them 5 s
# again, and they have 90 s to go. Of 160 s x 4 GPUs red has 420, blue 100. red's fair share is 4 for 10 s,
# 2 for 55 s, 4 for 35 s, 2 for 60 s: 410; blue's 2 for 55 s.
run simulate --json
case=parked
is span_s 160.0
is allocated_pct 81.25
is parked 2.0
is terminated 0.0
is ended 6.0
is wait_median_s 0.0
is wait_p95_s 5.0
is redone_gpu_h 0.0
is wait_median_s 5.0 '"blue"'
is wait_p95_s 0.0 '"red"'
same 'parked: what red had' "$(member used_gpu_h '"red"' | cut -c 1-8)" 0.116666
same 'parked: what blue had' "$(member used_gpu_h '"blue"' | cut -c 1-8)" 0.027777
same 'parked: part of red' "$(member part_of_share '"red"' | cut -c 1-6)" 1.0243
same 'parked: part of blue' "$(member part_of_share '"blue"' | cut -c 1-6)" 0.9090
# (420/410 + 100/110)^2 / (2 ((420/410)^2 + (100/110)^2))
same 'parked: Jain' "$(member jain | cut -c 1-6)" 0.9964

# --- Terminated: blue starts at once. The two of red may come back after 50 s, and begin again: at 60 s, until 160 s. 20 s of
# a GPU were for nothing.
sed 's/,5,$/,5,terminate/' "$jobs" >"$work/terminate.csv"
jobs=$work/terminate.csv run simulate --json
jobs=$work/jobs.csv case=terminated
is span_s 160.0
is terminated 2.0
is parked 0.0
is wait_p95_s 0.0 '"blue"'
same 'terminated: for nothing' "$(member redone_gpu_h | cut -c 1-7)" 0.00555
case='terminated by default'
sed 's/swap_cost,/swap,/' "$jobs" >"$work/preset.csv"
jobs=$work/preset.csv run simulate --on-reclaim terminate --swap-cost 5s --json
jobs=$work/jobs.csv
is terminated 2.0
is span_s 160.0

# --- Until: at 100 s all but the two that were parked have ended. Those did not work for 60 s, and blue's for 5.
run simulate --until 100s --json
case=until
is span_s 100.0
is ended 4.0
is waiting_jobs 1.3

# --- Parked for too long: given up at 60 s, when the machine would let it come back, and begun anew when blue has ended.
run simulate --resume-wait 20s --json
case='resume wait'
is span_s 165.0
is parked_given_up 2.0
same 'resume wait: for nothing' "$(member redone_gpu_h | cut -c 1-7)" 0.00555

# --- An elastic gang: 4 tasks of 100 s, of which 2 must run. It goes on with these from 10 s; blue's run from 15 s to 65 s, and
# at 70 s the others are back. 40 s and 120 s of 400 s are done by then, and 240 s are left for 4.
cat >"$work/elastic.csv" <<'END'
name,project,gang,min,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,duration,swap_cost
train,red,4,2,1000,1024,1,1000,0,100,5
b,blue,2,,1000,1024,1,1000,10,50,5
END
jobs=$work/elastic.csv run simulate --json
jobs=$work/jobs.csv case=elastic
is parked 2.0
is ended 2.0
is span_s 130.0
is redone_gpu_h 0.0

# --- A gang that is terminated as a whole, and one that must not be stopped; priorities within a project.
cat >"$work/ranks.csv" <<'END'
name,project,priority,preemptible,gang,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,duration,on_reclaim
low,red,10,yes,4,1000,1024,1,1000,0,100,terminate
high,red,60,,1,1000,1024,1,1000,40,10,
for-good,red,100,,1,1000,1024,1,1000,0,30,
END
jobs=$work/ranks.csv run simulate --swap-cost 0s --json
jobs=$work/jobs.csv case=ranks
# for-good, then all of low at 30 s; high stops it at 40 s, and it begins again at 50 s.
is terminated 4.0
is span_s 150.0
is wait_p95_s 30.0

# --- A job without a project is in `default`; users of others are told.
cat >"$work/users.csv" <<'END'
name,project,user,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,duration
a,,carl,1000,1024,1,1000,0,10
b,blue,ann,1000,1024,1,500,0,10
c,red,carl,1000,1024,1,500,0,10
d,blue,,1000,1024,0,0,0,10
END
jobs=$work/users.csv expect 'default' 0 '^default  *0  *1  *1 ' simulate
sed 's/blue,ann/blue,carl/' "$work/users.csv" >"$work/stranger.csv"
jobs=$work/stranger.csv expect 'a stranger' 64 "stranger.csv line 3: project blue is not for user 'carl'; add the user" simulate

# --- Moves: two halves on two GPUs, and for-good wants a whole one at 10 s. One half leaves until 15 s and is back 5 s later.
cat >"$work/moves.csv" <<'END'
name,project,priority,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,duration,swap_cost
a,red,100,1000,1024,1,500,0,100,5
b,red,100,1000,1024,1,500,0,100,5
c,blue,100,1000,1024,2,1000,0,100,5
d,red,100,1000,1024,1,1000,10,20,5
END
jobs=$work/moves.csv run simulate --policy spread --moves 1 --json
jobs=$work/jobs.csv case=moves
is moved 1.0
is wait_p95_s 5.0
is span_s 110.0
is redone_gpu_h 0.0
jobs=$work/moves.csv run simulate --policy spread --json
jobs=$work/jobs.csv case='no moves'
is moved 0.0
is wait_p95_s 90.0

# --- Pools, and jobs that fit nowhere.
sed 's/users:.*/pools: [small]/' "$lab" >"$work/pools.yaml"
expect 'pools' 0 'line 6: one task wants 1 GPU, but no node that it may use' simulate --projects "$work/pools.yaml"
expect 'pools: others' 0 '^jobs that ended  *4$' simulate --projects "$work/pools.yaml"
sed 's/users:.*/pools: [big]/' "$lab" >"$work/pools.yaml"
expect 'pools: its own' 0 '^jobs that ended  *6$' simulate --projects "$work/pools.yaml"

# --- Decided every 30 s: at 30 s two of red are told to go, at 60 s blue's start where these were, at 120 s red's are
# brought back, run from 125 s on, and have 70 s to go.
run simulate --cycle 30s --json
case='every 30 s'
is span_s 195.0
is wait_p95_s 50.0 '"blue"'

# --- Host memory has room for one of them: the other is terminated if it may lose its work, and otherwise
# b2 waits until b1 has ended, at 65 s.
sed 's/,pool$/,pool,host_mib/; s/,big$/,big,3000/' "$nodes" >"$work/little.csv"
sed 's/on_reclaim/park_mib/; s/,5,$/,5,2000/' "$jobs" >"$work/large.csv"
nodes=$work/little.csv jobs=$work/large.csv run simulate --json
nodes=$work/nodes.csv jobs=$work/jobs.csv case='little host memory'
is parked 1.0
is terminated 0.0
is wait_p95_s 55.0 '"blue"'
nodes=$work/little.csv jobs=$work/large.csv run simulate --resume-wait 1h --json
nodes=$work/nodes.csv jobs=$work/jobs.csv case='little host memory, may be lost'
is parked 1.0
is terminated 1.0
is wait_p95_s 5.0 '"blue"'

# --- What is drawn depends on the seed alone.
cat >"$work/more.yaml" <<'END'
projects:
  lab: {gpu: {quota: 8}}
  red: {parent: lab, gpu: {quota: 3}}
  blue: {parent: lab, gpu: {quota: 3, over_quota_weight: 2}}
  green: {parent: lab, gpu: {quota: 2}, reclaim_min_runtime: 2m}
END
awk 'BEGIN {
	print "name,project,priority,gang,min,on_reclaim,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,duration"
	split("red blue green", p)
	for (i = 0; i < 150; i++) {
		gang = i % 7 == 0 ? 3 : 1
		printf "%d,%s,%d,%d,%d,%s,1000,1024,%d,%d,%d,%d\n", i, p[i * i % 3 + 1], i % 5 * 10, gang, (gang > 1 ? 2 : 1),
			(i % 4 ? "park" : "terminate"), 1, (i % 3 ? 1000 : 500), i * 37 % 1500 * 20, 300 + i * 53 % 4000
	}
}' >"$work/more.csv"
printf 'sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,4,A\nb,64000,262144,4,B\n' >"$work/two.csv"
more() { "$sluice" simulate --nodes "$work/two.csv" --jobs "$work/more.csv" --projects "$work/more.yaml" "$@"; }
for once in 1 2; do
	run more --arrivals shuffled --failures 3h --repair 10m --seeds 3 --first-seed 5 --json --output "$work/$once.csv" \
		--plot "$work/$once.svg"
	printf '%s' "$out" >"$work/$once.json"
done
for kind in json csv svg; do
	rows=$((rows + 1))
	[ -s "$work/1.$kind" ] || fail "$kind: nothing was written"
	cmp -s "$work/1.$kind" "$work/2.$kind" || fail "$kind: not the same again"
done
same 'seeds' "$(printf '%s' "$out" | sed -n 's/^ *"seed": \([0-9]*\),$/\1/p' | tr '\n' ' ')" '5 6 7 '
case='with failures'
is ended 150.0
rows=$((rows + 1))
member lost | awk '{ exit !($1 > 0) }' || fail "with failures: $(member lost) tasks were lost"
run more --arrivals shuffled --failures 3h --repair 10m --seeds 1 --first-seed 6 --json
same 'another seed' "$(member seed '"runs"')" 6
same 'its figures alone' "$(member jain '"runs"')" "$(sed -n '/"seed": 6,/,$s/^ *"jain": \(.*\),$/\1/p' "$work/1.json" | head -n 1)"
for policy in spread bestfit fgd; do
	expect "$policy" 0 "^policy $policy, arrivals trace, 1 run of " more --policy $policy
done

# --- Files it writes: at 20 s red has two GPUs and blue two, and two of red wait.
expect 'output' 0 '' simulate --output "$work/out.csv" --plot "$work/out.svg"
same 'output: names' "$(head -n 1 "$work/out.csv")" 'policy,seed,time_s,project,gpus,share_gpus,waiting_jobs,fragments_gpus'
same 'output: at 20 s' "$(grep '^pack,0,20,' "$work/out.csv" | tr '\n' ' ')" \
	'pack,0,20,blue,2.0000,2.0000,0.00, pack,0,20,red,2.0000,2.0000,2.00, pack,0,20,*,4.0000,4.0000,2.00,0.0000 '
same 'output: its last second' "$(tail -n 1 "$work/out.csv" | cut -d , -f 3)" 159
grep -q '</svg>' "$work/out.svg" || fail 'plot: the picture does not end'
expect 'disk full' 71 'output: cannot write /dev/full: No space left on device' simulate --output /dev/full
expect 'plot, disk full' 71 'plot: cannot write /dev/full: No space' simulate --plot /dev/full

# --- Without an end: the node fails long before the job has done its 100 s.
cat >"$work/endless.csv" <<'END'
name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,duration
a,1000,1024,1,1000,0,1000000
END
jobs=$work/endless.csv expect 'no end' 0 '^1 of 1 runs given up: jobs are stopped again and again before they end' \
	simulate --failures 1h --repair 1s --seeds 1
# 40 jobs of 31 years on 4 GPUs: three times four have ended in a hundred years, and the next is named.
{ echo cpu_milli,memory_mib,num_gpu,gpu_milli,duration; seq 40 | sed 's/.*/1000,1024,1,1000,1e9/'; } >"$work/years.csv"
jobs=$work/years.csv expect 'a hundred years' 0 \
	"^1 of 1 runs given up after a hundred years: the job of $work/years.csv line 14 has not ended by then; give shorter durations" simulate
same 'a hundred years: ended' "$(grep '^jobs that ended' "$work/out" | tr -s ' ')" 'jobs that ended 12'
# The gang would end after 79,000 years, more than nanoseconds can count: what is left of that modulo 2^64 is some years.
printf 'cpu_milli,memory_mib,num_gpu,gpu_milli,gang,min,duration\n1000,1024,1,1000,9965,1,1e9\n' >"$work/gang.csv"
jobs=$work/gang.csv expect 'a gang for ever' 0 '^1 of 1 runs given up after a hundred years: .* line 2 has not ended' simulate
same 'a gang for ever: ended' "$(grep '^jobs that ended' "$work/out" | tr -s ' ')" 'jobs that ended 0'
# As long as it was asked for, and no longer.
jobs=$work/gang.csv run simulate --until 40000d --json
case='until 110 years'
is given_up 1
is span_s 3155760000.0
jobs=$work/years.csv run simulate --until 10000d --json
case='until 27 years'
is given_up 0
is span_s 864000000.0
jobs=$work/jobs.csv
# A limit of nothing: it waits for ever, and that is soon seen.
printf 'projects: {default: {gpu: {limit: 0}}}\n' >"$work/none.yaml"
jobs=$work/endless.csv expect 'never' 0 '^jobs that ran  *0$' simulate --projects "$work/none.yaml"

# --- Bad command lines.
expect 'percent' 64 'until 130%: with --projects jobs come at their time' simulate --until 130%
expect 'until' 64 'until soon: ' simulate --until soon
expect 'until 0' 64 'until 0s: give a time above 0' simulate --until 0s
expect 'mix' 64 'mix makes other jobs, and these are in no project' simulate --mix share40
expect 'learn' 64 'learn trace: with --projects the policy learns from arrivals' simulate --learn trace
expect 'orders' 64 'an order has no times, .* take trace or shuffled$' simulate --arrivals "$work/orders.csv"
expect 'seeds' 64 'seeds: nothing is drawn, so every run would be the same' simulate --seeds 2
expect 'first seed' 64 'first-seed: nothing is drawn' simulate --first-seed 0
expect 'repair' 64 'repair: nothing fails without --failures TIME$' simulate --repair 1h
expect 'on-reclaim' 64 'on-reclaim kill: give park or terminate$' simulate --on-reclaim kill
expect 'policy' 64 "no policy 'best'" simulate --policy best
for option in 'swap-cost 5s' 'on-reclaim park' 'resume-wait 1h' 'cycle 1m' 'failures 1h' 'repair 1h'; do
	# shellcheck disable=SC2086 # two words are meant
	expect "without projects: $option" 64 "${option% *}: nothing runs, and nothing is stopped, without --projects FILE$" \
		"$sluice" simulate --nodes "$nodes" --jobs "$jobs" --$option
done

# --- Bad files: the name and the line.
bad() { # WHAT LINE PATTERN COLUMNS VALUES: of a job
	printf 'cpu_milli,memory_mib,num_gpu,gpu_milli,%s\n1000,1024,1,1000,%s\n' "$4" "$5" >"$work/bad.csv"
	jobs=$work/bad.csv expect "$1" 64 "bad.csv line $2: $3" simulate
}
bad 'unknown project' 2 "there is no project 'green' in the file of projects; add it there, or name another one$" project,duration green,5
bad 'priority' 2 "priority is 'high'; it must be a whole number" priority,duration high,5
bad 'huge priority' 2 "priority is '99999999999999999999'" priority,duration 99999999999999999999,5
bad 'no gang' 2 'gang is 0; it must be at least 1$' gang,duration 0,5
bad 'huge gang' 2 'gang is 10001, and a gang may have 10000 tasks; make several jobs of it, or fewer' gang,duration 10001,5
bad 'gang beyond all numbers' 2 "gang is '99999999999'; it must be a whole number of 0 to " gang,duration 99999999999,5
bad 'no min' 2 'min is 0; it must be at least 1$' gang,min,duration 2,0,5
bad 'min above gang' 2 'min is 3, more than the 2 of its gang$' gang,min,duration 2,3,5
bad 'preemptible' 2 "preemptible is 'maybe'; it must be yes or no$" preemptible,duration maybe,5
bad 'on_reclaim' 2 "on_reclaim is 'kill'; it must be park or terminate$" on_reclaim,duration kill,5
bad 'duration' 2 "duration is 'long'; it must be seconds, not negative$" duration long
bad 'negative duration' 2 "duration is '-5'" duration -5
bad 'huge duration' 2 "duration is '2e9'; it must be seconds, at most 1000000000$" duration 2e9
bad 'swap cost' 2 "swap_cost is 'x'" swap_cost,duration x,5
bad 'host memory' 2 "park_mib is 'x'" park_mib,duration x,5
bad 'no duration' 2 'it does not say how long it runs; give duration, or deletion_time$' creation_time 5
bad 'backwards' 2 'deletion_time 5 is before creation_time 9$' creation_time,deletion_time 9,5
printf 'cpu_milli,memory_mib,num_gpu,gpu_milli,duration\n1000,1024,1,1000,5\n1000,10' >"$work/bad.csv"
jobs=$work/bad.csv expect 'truncated' 64 'bad.csv line 3: it does not end with a newline' simulate
bad_node() { # WHAT PATTERN COLUMN VALUE
	printf 'sn,cpu_milli,memory_mib,gpu,%s\na,1,1,1,%s\n' "$3" "$4" >"$work/bad.csv"
	nodes=$work/bad.csv expect "$1" 64 "bad.csv line 2: $2" simulate
}
bad_node 'pool' "pool is 'a b'; it must be letters" pool 'a b'
bad_node 'swaps' "swaps is '1'; it must be yes or no$" swaps 1
bad_node 'host_mib' "host_mib is '-1'" host_mib -1
{ echo sn,cpu_milli,memory_mib,gpu,pool; seq 31 | sed 's/.*/a,1,1,1,p&/'; } >"$work/bad.csv"
nodes=$work/bad.csv expect 'pools' 64 "bad.csv line 32: the pool 'p31' is one too many: 30 can be told apart$" simulate
bad_yaml() { # WHAT LINE PATTERN TEXT
	printf '%b' "$4" >"$work/bad.yaml"
	expect "$1" 64 "bad.yaml, line $2: $3" simulate --projects "$work/bad.yaml"
}
bad_yaml 'yaml: truncated' 3 'not YAML' 'projects:\n  red: {gpu: {quota'
bad_yaml 'yaml: unknown field' 3 "project red: unknown field 'colour'" 'projects:\n  red:\n    colour: 1\n'
bad_yaml 'yaml: cycle' 3 'project blue stands above itself' 'projects:\n  red: {parent: blue}\n  blue: {parent: red}\n'
bad_yaml 'yaml: children above the parent' 2 '' 'projects:\n  lab: {gpu: {quota: 1}}\n  red: {parent: lab, gpu: {quota: 2}}\n'
bad_yaml 'yaml: no such parent' 2 'project red: there is no project lab for its parent' 'projects:\n  red: {parent: lab}\n'
bad_yaml 'yaml: negative' 2 '' 'projects:\n  red: {gpu: {quota: -2}}\n'
expect 'yaml: no file' 64 'cannot read .*/none: No such file' simulate --projects "$work/none"

# --- The guide's example, to the letter.
cd "${SLUICE_SOURCE:?names the source folder}/docs/guide/examples" || exit 1
for how in '' ' --on-reclaim terminate'; do
	typed="sluice simulate --nodes nodes.csv --jobs jobs.csv --projects lab.yaml$how"
	# shellcheck disable=SC2086 # words are meant
	run "$sluice" ${typed#sluice }
	same "the guide:$how" "$(sed -n "/^\$ $typed\$/,/^\(\$ .*\|\`\`\`\)\$/p" ../simulate.md | sed '1d;$d')" "$out"
done
finish
