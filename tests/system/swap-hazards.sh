#!/bin/sh
# What makes moving a program's memory hard: callbacks that take locks, streams that wait for values, captures that
# stay open, kernels that never end, many contexts, threads that come and go, signals while it waits, a
# notebook server that restarts its kernel, forks, exits. None hangs, none finds a word changed, and what
# cannot be moved now is tried again later.
# peer-failures rows 15, 25, 27, 30.
export LIMIT=400
export BOX="--gpus 1 --memory 512MiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
# A move finds its moment among work that never pauses for all threads.
export SWAPPER_PATIENCE=100
. "$(dirname "$0")/swap-lib.sh"
software_only "kernels that never end"
config 'host_memory: 3GiB'
daemon_start
try_park() { "$B/sluice" park --no-wait "$1" >"$T/park.out" 2>&1; }
try_resume() { "$B/sluice" resume --no-wait "$1" >"$T/resume.out" 2>&1 || fail "resume $1: $(cat "$T/resume.out")"; }
# trips NAME COUNT: away and back so often, while its threads work. With work that can only end if one of its
# threads gets on it may stay for a while, but not for ever.
trips() {
	trip=0
	while [ $trip -lt "$2" ]; do
		trip=$((trip + 1))
		park "$1"
		resume "$1"
		goes_on "$1" || fail "$1: its threads stand still after trip $trip"
	done
}
# Callbacks and values leave work under way that waits for threads of their own; only between two rounds there is none.
for work in "callbacks 3 64k 20" "values 3 64k 20" "graphs 2 1m 5" "comers 4 256k 0" "contexts 2 256k 5" \
	"churn 4 1m 0" "copies 2 1m 0" "queries 2 1m 1"; do
	name=${work%% *}
	work_from=$(now_ms)
	swapper "$name" --request 0.1 --limit 0.5
	ok "$name" alloc big 30m
	ok "$name" fill big 1
	# shellcheck disable=SC2086 # words
	ok "$name" begin $work
	goes_on "$name" || fail "$name: nothing is done at all"
	trips "$name" 3
	stop_work "$name"
	contents "$name" "after its trips"
	end_swapper "$name"
	note "$name: $(($(now_ms) - work_from)) ms"
done
check_books_empty

# `why` says why it is not parked yet, and ps does not say that it is.
why_says() { "$B/sluice" why "$1" 2>&1 | sed '/^Before/,$d' | grep -q "$2"; }
is_in_the_way() {
	CHECKS=$((CHECKS + 1))
	until_true 20 why_says "$1" "is being parked.*$2" || fail "why $1 does not say \"$2\": $("$B/sluice" why "$1" 2>&1)"
	check "$1: not parked yet" "$(residency "$1")" = parking
}

# A capture that stays open, and a kernel that does not end: it stays, runs on, and leaves once it can.
for trouble in capture endless; do
	swapper "$trouble" --request 0.1 --limit 0.5
	ok "$trouble" alloc big 30m
	ok "$trouble" fill big 1
	ok "$trouble" alloc more 10m
	ok "$trouble" fill more 2
	if [ $trouble = capture ]; then
		ok capture capture more 3
	else
		ok endless endless
	fi
	try_park "$trouble"
	sleep 1
	check "$trouble: it is still there" "$(evicted_bytes "$trouble")" = 0
	if [ $trouble = capture ]; then
		is_in_the_way capture "recording a CUDA graph"
	else
		is_in_the_way endless "its work has not ended for"
	fi
	later "$trouble" run big 1 0
	until_true 20 late "$trouble" 1 || fail "$trouble: its work does not go on while it cannot leave"
	if [ $trouble = capture ]; then
		ok capture endcapture
	else
		ok endless release
	fi
	settled "$trouble" parked
	try_resume "$trouble"
	settled "$trouble" bound
	[ $trouble = endless ] || ok capture replay
	until_true 20 late "$trouble" 1 || fail "$trouble: its work never ends"
	contents "$trouble" "when it could leave"
	end_swapper "$trouble"
done
check_books_empty

# A program that is stopped leaves when it goes on.
swapper sleeper --request 0 --limit 0.5
ok sleeper alloc big 30m
ok sleeper fill big 1
kill -STOP "$(pid_of sleeper)"
try_park sleeper
is_in_the_way sleeper "its process $(pid_of sleeper) has been stopped"
kill -CONT "$(pid_of sleeper)"
settled sleeper parked
CHECKS=$((CHECKS + 1))
until_true 10 why_says sleeper "brings it back" || fail "why sleeper: $("$B/sluice" why sleeper 2>&1)"
try_resume sleeper
settled sleeper bound
contents sleeper "after a stop"

# One that is stopped when it is to come back takes no room from others meanwhile.
swapper owner --request 0.95
park sleeper
kill -STOP "$(pid_of sleeper)"
try_resume sleeper
CHECKS=$((CHECKS + 1))
until_true 20 why_says sleeper "its process $(pid_of sleeper) has been stopped" || fail "why sleeper: $("$B/sluice" why sleeper 2>&1)"
ok owner alloc big 430m
check "the sleeper is not back" "$(residency sleeper)" = evicted
kill -CONT "$(pid_of sleeper)"
settled sleeper bound
contents sleeper "after a stop on the host"
end_swapper owner
end_swapper sleeper
check_books_empty

# Signals while its threads stand at the gate: caught ones change nothing, others end it.
swapper signals --request 0.1 --limit 0.5
ok signals alloc big 30m
ok signals fill big 1
ok signals begin rounds 4 1m 0
ok signals catch
park signals
later signals run big 2 0
for _ in 1 2 3 4 5; do
	kill -INT "$(pid_of signals)"
	kill -TERM "$(pid_of signals)"
	sleep 0.05
done
ok signals catch
check "signals that came while it waited" "$VALUE" -ge 2
ok signals alarm 3
sleep 0.5
resume signals
until_true 20 late signals 1 || fail "its work does not go on after signals"
trips signals 2
ok signals alarm 0
stop_work signals
contents signals "after signals"
park signals
later signals run big 1 0
kill -STOP "$(pid_of signals)"
try_resume signals
sleep 0.3
kill -CONT "$(pid_of signals)"
settled signals bound
until_true 20 late signals 2 || fail "it does not go on after a stop"
park signals
ok signals alarm 3
end_swapper signals
check_books_empty

# Ctrl-C and SIGTERM at the gate, not caught: it ends. What a shell starts in the background ignores SIGINT, unless
# told otherwise.
for signal in INT TERM; do
	SWAPPER_FRONT="env --default-signal=INT"
	swapper "ends_$signal" --request 0.1 --limit 0.5
	# shellcheck disable=SC2034 # swap-lib.sh reads it
	SWAPPER_FRONT=
	ok "ends_$signal" alloc big 20m
	ok "ends_$signal" fill big 1
	park "ends_$signal"
	later "ends_$signal" check big
	sleep 0.1
	kill -$signal "$(pid_of "ends_$signal")"
	CHECKS=$((CHECKS + 1))
	until_true 10 gone "$(pid_of "ends_$signal")" || fail "SIG$signal does not end it at the gate"
	kill -KILL "$(pid_of "ends_$signal")" 2>/dev/null
	wait "$(pid_of "ends_$signal")" 2>/dev/null
	rm -f "$T/ends_$signal.in"
done
check_books_empty

# A notebook server: its kernel is killed while it is away, and the next one joins the same workload, which is
# resumed for it.
cat >"$T/server" <<'END'
#!/bin/sh
while [ ! -e "$2/over" ]; do
	"$1" <>"$2/kernel.in" >>"$2/kernel" 2>&1 &
	echo $! >"$2/kernel.pid"
	wait $!
done
END
mkfifo "$T/kernel.in"
: >"$T/kernel"
$RUN --name notebook --request 0.2 --limit 0.5 -- sh "$T/server" "$P/swapper" "$T" &
notebook=$!
until_true 20 grep -q start "$T/kernel" || fail "the kernel does not start"
ok kernel alloc big 30m
ok kernel fill big 1
park notebook
later kernel check big
kill -INT "$(cat "$T/kernel.pid")"
kill -KILL "$(cat "$T/kernel.pid")"
again() { [ "$(grep -c '"start"' "$T/kernel")" -ge "$1" ]; }
# What the next one asks for is granted once it is resumed.
try_resume notebook
CHECKS=$((CHECKS + 1))
until_true 20 again 2 || fail "the next kernel does not start"
settled notebook bound
ok kernel alloc big 35m
ok kernel fill big 2
is "the next kernel has its own memory" 0 kernel checkall
: >"$T/over"
echo quit >"$T/kernel.in"
wait $notebook
check "the server ends well" $? = 0
check_books_empty

# Forked while it is away: the child has nothing of it, and ends or lives without harm; the parent gets all back.
swapper forks --request 0.2 --limit 0.5
ok forks alloc big 30m
ok forks fill big 1
ok forks begin rounds 2 1m 0
park forks
ok forks fork
child=$VALUE
resume forks
check "its threads go on beside a child" "$(goes_on forks && echo yes)" = yes
stop_work forks
contents forks "with a child alive"
park forks
kill -KILL "$child" 2>/dev/null
resume forks
contents forks "without it"
end_swapper forks
check_books_empty
daemon_stop
check "SIGTERM ends it well" $? = 0
finish
