#!/bin/sh
# What one meets on the first day: names that are mistyped, amounts that no GPU has, and what is asked for twice.
export BOX="--gpus 1 --memory 2GiB"
export LIMIT=110
. "$(dirname "$0")/lib.sh"
software_only "a GPU of 2 GiB"
S="$B/sluice"
# says STATUS PATTERN CMD...: it ends so, and has a line like this.
says() {
	says_status=$1 says_pattern=$2
	shift 2
	"$@" >"$T/said" 2>&1
	ended=$?
	check "'$(basename "$1") $2 ${3-} ...' ends" $ended = "$says_status"
	check_file "and says so" "$T/said" "$says_pattern"
}
config 'host_memory: 512MiB'
daemon_start
printf 'projects:\n  vision:\n    gpu: {quota: 1}\n' >"$T/projects.yaml"
"$S" project apply "$T/projects.yaml" >"$T/said" 2>&1 || fail "no project: $(cat "$T/said")"

# Projects.
says 75 "there is no project 'visoin'; did you mean 'vision'\?" "$S" run --project visoin -- true
says 75 "there is no project 'visoin'; did you mean 'vision'\?" "$S" run --project visoin --request 0.1 --wait -- true
says 75 "there is no project 'nope'; sluice project list shows all" "$S" submit --project nope -- true
says 75 "there is no project 'nope'" "$S" submit --try --project nope -- true

# Amounts.
for verb in run 'run --wait' submit 'submit --try'; do
	# shellcheck disable=SC2086 # words
	says 75 'a request of 5 GiB does not fit any GPU: the best one, GPU 0 .*, can share 1\.[0-9]* GiB; lower --request' \
		"$S" $verb --request 5GiB -- true
done
says 64 "'25%' is not an amount of GPU memory; write it as a fraction: 0\.25" "$S" run --request 25% -- true
says 0 'warning: --limit 5 GiB is cut to 1\.[0-9]* GiB, which is all that its GPU can share' "$S" run --request 0 --limit 5GiB -- true

# Verbs.
says 64 "unknown verb 'kill'; did you mean 'stop'\?" "$S" kill nothing
says 64 "unknown verb 'python'; to start a program: sluice run -- CMD" "$S" python train.py
says 64 "unknown verb 'pakr'; did you mean 'park'\?" "$S" help pakr

# Without a daemon each verb says so once.
for verb in stop park resume; do
	says 69 'no daemon answers' env SLUICE_SOCKET="$T/none.sock" "$S" $verb one two three
	check "not for each name" "$(grep -c 'no daemon answers' "$T/said")" = 1
done
says 64 "not a valid time: 'yesterday'; write .* or a span such as 2h" "$S" events --since yesterday

# Changes that are cut, or cannot be.
$RUN --request 0.25 --name alpha -- sleep 100 &
$RUN --request 0.25 --name beta -- sleep 100 &
two() { [ "$(workloads)" = 2 ]; }
until_true 20 two || fail "they do not run"
says 0 'warning: --limit 10 GiB is cut to 1\.[0-9]* GiB' "$S" set alpha --limit 10GiB
says 0 '^alpha: request 480 MiB, limit 1 GiB' "$S" set alpha --limit 1GiB
check "what is not cut is not said to be" "$(grep -c cut "$T/said")" = 0
says 75 'a request of 10 GiB does not fit GPU 0 .*, which can share 1\.[0-9]* GiB; lower --request' "$S" set alpha --request 10GiB

# Several at once, and what is so already.
says 0 '^beta is parked: ' "$S" park alpha beta
says 0 '^alpha is parked already$' "$S" park alpha
says 75 "there is no workload 'gamma'" "$S" park alpha gamma beta
check_file "the others are looked at all the same" "$T/said" '^beta is parked already$'
says 0 '^alpha is back: ' "$S" resume alpha
says 0 '^alpha is not parked$' "$S" resume alpha beta
check_file "and the next one" "$T/said" '^beta is back: '
says 0 '^beta: SIGTERM to 1 process' "$S" stop alpha beta
none() { [ "$(workloads)" = 0 ]; }
until_true 20 none || fail "they do not end"
says 0 '^alpha has ended already$' "$S" stop alpha beta
says 75 "there is no workload 'gamma'" "$S" stop gamma
"$S" submit --name job -- sleep 100 >"$T/said" 2>&1 || fail "no job: $(cat "$T/said")"
says 0 '^job: ' "$S" stop job
says 143 '^job was stopped' "$S" wait job --timeout 20s
says 0 '^job has ended already$' "$S" stop job

# What died of its limit says so wherever one looks.
cat >"$T/dies" <<END
#!/bin/sh
"$P/holder" --bytes 300MiB --ms 100 || exit 3
END
chmod +x "$T/dies"
died='it ended with exit status 3 after it asked for 300 MiB on GPU 0, of which its limit of 256 MiB left [0-9.]+ MiB; submit it with a higher --limit'
"$S" submit --request 200MiB --limit 256MiB --name hog -- "$T/dies" >"$T/said" 2>&1 || fail "no job: $(cat "$T/said")"
says 3 "^hog failed: $died$" "$S" wait hog
says 0 "^sluice logs: hog failed: $died$" "$S" logs hog
says 0 "^sluice logs: hog failed: $died$" "$S" logs -f hog
says 0 "^hog: job [0-9]+ failed: exit status 3, after .*; $died; sluice logs hog shows its output$" "$S" why hog
says 0 "^ *[0-9]+ *hog .* failed .* 3  .*  $died" "$S" ps --all
says 3 "^hog-wait failed: $died$" "$S" submit --wait --request 200MiB --limit 256MiB --name hog-wait -- "$T/dies"
"$S" run --limit 256MiB --name hog-run -- "$T/dies" >"$T/said" 2>&1
check "one in the foreground has its own exit status" $? = 3
says 0 'hog-run asked for 300 MiB on GPU 0, and its limit of 256 MiB leaves [0-9.]+ MiB\.$' "$S" why hog-run
"$S" submit --request 200MiB --name other -- sh -c 'exit 3' >"$T/said" 2>&1 || fail "no job: $(cat "$T/said")"
says 3 '^other failed: it ended with exit status 3$' "$S" wait other

# One number for each thing, whichever it is, and names of others.
$RUN --request 0.1 --name first -- sleep 100 &
until_true 20 sh -c "'$S' ps | grep -q first" || fail "first does not run"
"$S" submit --request 0.1 --name second -- sleep 100 >"$T/said" 2>&1 || fail "no job: $(cat "$T/said")"
second=$(sed -n 's/^second: queued as job \([0-9]*\);.*/\1/p' "$T/said")
id_of() { "$S" ps --json | json "name=$1.id"; }
check "a job and a workload have numbers of their own" "$(id_of first)" != "$second"
runs() { [ "$("$S" ps --json | json "name=second.state")" = bound ] || [ "$("$S" ps --json | json "name=second.state")" = reserved ]; }
until_true 20 runs || fail "second does not run: $("$S" ps)"
check "a job keeps its number while it runs" "$(id_of second)" = "$second"
says 0 "^ *$second  *second " "$S" ps --jobs
says 0 "^ *$second  *second " "$S" ps
check_file "the workload too" "$T/said" "^ *$(id_of first)  *first "
says 0 '^second: request [0-9]* MiB, limit 512 MiB' "$S" set "$second" --limit 512MiB
says 0 '^second is parked: ' "$S" park "$second"
says 0 '^first: SIGTERM' "$S" stop "$(id_of first)" "$second"
until_true 20 none || fail "they do not end by number"
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$S"; then
	chmod 711 "$T"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$S" run --request 0.1 --name train -- sleep 100 &
	$RUN --request 0.1 --name train -- sleep 100 &
	until_true 20 two || fail "not both run"
	owner=$(id -un 65534 2>/dev/null || echo 65534)
	says 0 "  $owner/train  *default " "$S" ps
	check_file "one's own has its name alone" "$T/said" '^ *[0-9]+  train  *default '
	says 0 "^$owner/train$" "$S" help --complete -- stop ''
	says 0 '^second$' "$S" help --complete -- wait ''
	says 0 "^train is parked: " "$S" park "$owner/train"
	says 0 ' train  *.* reserved ' "$S" ps
	says 0 "^train: SIGTERM" "$S" stop 65534/train train
	until_true 20 none || fail "they do not end by owner"
fi
check_books_empty
finish
