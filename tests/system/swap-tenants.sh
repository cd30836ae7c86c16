#!/bin/sh
# No program sees another's data. Fresh GPU memory, a program's own host memory, a child's inheritance, and /proc for another user hold
# none of the bytes of a program that was moved to the host, came back, or died there.
#
# Ours is the host: files that belong to one client alone, that no child of it has, and that are emptied before they are given back,
# even while another process has them open. That GPU memory of one process is empty when another gets it is the driver's promise.
# Evicted memory is given back to the driver while its program lives, as cuMemFree would, so this relies on it no less and no more. It
# is checked all the same, since a slab or a chunk that went from one to the other past the driver would show there: on the software
# GPU, which spoils a process's own fresh memory and empties others'.
export LIMIT=${LIMIT:-150}
export BOX="--gpus 1 --memory 512MiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "a GPU whose memory can be taken whole"
config 'host_memory: 1GiB'
# A program that has taken all there is does not wait for more.
config 'longest_wait: 500ms'
daemon_start
# snoop WHAT OPTIONS...: FOUND, OPENED, LOOKED.
snoop() {
	"$P/snoop" --seed 4711 "$@" >"$T/snoop" 2>"$T/snoop.err"
	# shellcheck disable=SC2034 # both are read by what calls it
	FOUND=$(json -l event=end found <"$T/snoop") OPENED=$(json -l event=end opened <"$T/snoop")
	LOOKED=$(json -l event=end looked_bytes <"$T/snoop")
}
tenant() {
	swapper "$1" --request 0.2 --limit 0.9
	ok "$1" alloc secret 60m
	ok "$1" fill secret 4711
	ok "$1" handles mine 16m 4m
	ok "$1" fill mine 4711
}
# The next tenant takes all there is, and looks.
next_tenant() {
	$RUN --name next --request 0 --limit 1.0 -- "$P/snoop" --seed 4711 --gpu 2GiB --self >"$T/next" 2>&1
	check "$1: the next one ends well" $? = 0
	check "$1: it looked at much" "$(json -l event=end looked_bytes <"$T/next")" -ge $((200 * MIB))
	check "$1: and found nothing" "$(json -l event=end found <"$T/next")" = 0
	# It took all, and its contexts' hidden memory grew later: that can be taken back, so no note says that the GPU is
	# degraded.
	"$B/sluice" events --json >"$T/events"
	check "$1: the GPU was never degraded" "$(grep -c DEGRADED "$T/events")" = 0
}
tenant one
park one
# That it can find: what is on the host lies in files that root may read.
if [ "$(id -u)" = 0 ]; then
	snoop --pid "$(pid_of one)"
	check "what is there is found, where root looks" "$FOUND" -ge 1000
	# Other users see nothing of it, nor of the daemon.
	for whose in "$(pid_of one)" "$DAEMON"; do
		setpriv --reuid 65534 --regid 65534 --clear-groups "$P/snoop" --seed 4711 --pid "$whose" >"$T/snoop" 2>&1
		check "another user can open nothing of process $whose" "$(json -l event=end opened <"$T/snoop")" = 0
	done
fi
# A child has copies of all that its parent has, but not of its GPU memory, wherever that lies.
if [ "$(id -u)" = 0 ]; then
	ok one fork
	CHILD=$VALUE
	snoop --pid "$CHILD"
	check "a child can be looked at" "$OPENED" -ge 1
	check "and has none of the files of its parent's host memory" "$(readlink /proc/"$CHILD"/fd/* | grep -c memfd:sluice-host)" = 0
	check "nor maps one" "$(grep -c memfd:sluice-host "/proc/$CHILD/maps")" = 0
	kill -KILL "$CHILD"
fi
next_tenant "moved away"
# One that has host memory of its own, given back and taken anew, looks at its own.
resume one
contents one "after the visitors"
park one
swapper two --request 0.1 --limit 0.5
ok two alloc a 40m
ok two fill a 1
park two
# Files of dead clients that another process still has open (7) are emptied: here is one, with evicted data.
keep_file() {
	for file in /proc/"$(pid_of one)"/fd/*; do
		case $(readlink "$file") in *memfd:sluice-host*) ;; *) continue ;; esac
		exec 7<"$file"
		snoop --fd 7
		[ "$FOUND" -lt 1000 ] || return 0
	done
	return 1
}
if [ "$(id -u)" = 0 ]; then
	KEPT=no
	keep_file && KEPT=yes
	check "a file with its bytes is open here, too" $KEPT = yes
fi
kill_swapper one
resume two
contents two "whose neighbour died on the host"
if [ "$(id -u)" = 0 ]; then
	snoop --pid "$(pid_of two)"
	check "nothing of the dead in its host memory" "$FOUND" = 0
	given_back() { [ "$("$B/sluice" ps --json | grep -c '"name": *"one"')" = 0 ]; }
	until_true 30 given_back
	# Emptied by a thread of its own.
	nothing_in() { snoop "$@" && [ "$FOUND" = 0 ]; }
	until_true 30 nothing_in --pid "$DAEMON"
	check "nor in what the daemon keeps" "$FOUND" = 0
	until_true 30 nothing_in --fd 7
	check "nor in its file that is still open" "$FOUND" = 0
	check "of which there is one" "$LOOKED" -ge $MIB
	exec 7<&-
fi
next_tenant "dead on the host"
end_swapper two
# Died in its own GPU memory.
tenant three
kill_swapper three
next_tenant "dead on the GPU"
check_books_empty
check "the host's memory is given back" "$("$B/sluice" dump | json host_memory.made_bytes)" = 0
daemon_stop
finish
