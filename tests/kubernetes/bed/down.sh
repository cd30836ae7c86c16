#!/bin/sh
# Ends what up.sh began: its own processes by their ids, then the pods' shims, mounts and cgroups left below RUN.
here=$(cd "$(dirname "$0")" && pwd)
RUN=${RUN:-$here/run}
running() { # A process that has ended may stay as a zombie where PID 1 is no init.
	case $(cut -d ' ' -f 3 "/proc/$1/stat" 2>/dev/null) in '' | Z) return 1 ;; esac
}
stop() { # stop SIGNAL NAME...: by the ids that up.sh wrote, waited for, then killed
	signal=$1
	shift
	for name; do
		[ -f "$RUN/$name.pid" ] && kill "-$signal" "$(cat "$RUN/$name.pid")" 2>/dev/null
	done
	for name; do
		[ -f "$RUN/$name.pid" ] || continue
		pid=$(cat "$RUN/$name.pid") tries=50
		while running "$pid" && [ $tries -gt 0 ]; do
			sleep 0.1
			tries=$((tries - 1))
		done
		running "$pid" && kill -9 "$pid"
		rm -f "$RUN/$name.pid"
	done
}
ctr() { "${BIN:-$here/bin}/ctr" -a "$d/ctrd.sock" -n k8s.io "$@" 2>/dev/null; }
names() { # names PREFIX: of what was started so
	for f in "$RUN/$1"*.pid; do
		[ ! -e "$f" ] || basename "$f" .pid
	done
}
# shellcheck disable=SC2046 # words are meant
stop TERM $(names kubelet)
stop KILL sched kcm api etcd # nothing of theirs is kept
for d in "$RUN"/node[0-9]; do
	[ -S "$d/ctrd.sock" ] || continue
	ctr tasks ls -q | while read -r c; do ctr tasks rm -f "$c" >/dev/null; done
	ctr containers ls -q | while read -r c; do ctr containers rm "$c" >/dev/null; done
done
# shellcheck disable=SC2046
stop TERM $(names ctrd)
# A shim outlives containerd; it is told by the socket below RUN in its command line.
for p in /proc/[0-9]*; do
	{ tr '\0' ' ' <"$p/cmdline"; } 2>/dev/null | grep -q "containerd-shim-runc-v2 .*-address $RUN/node[0-9]/ctrd.sock" && kill -9 "${p#/proc/}" 2>/dev/null
done
grep -o " $RUN/[^ ]*" /proc/mounts | sort -r | while read -r m; do umount -l "$m" 2>/dev/null; done
if [ -f "$RUN/cni/10-kt.conflist" ]; then
	bridge=$(sed -n 's/.*"bridge":"\([^"]*\)".*/\1/p' "$RUN/cni/10-kt.conflist")
	for c in /sys/fs/cgroup/*/"$bridge"-node[0-9]; do
		[ -d "$c" ] && find "$c" -depth -type d -exec rmdir {} \; 2>/dev/null
	done
	# Of this bed's pods, which are those with an address of it.
	for a in "$RUN"/cni-state/kt*/[0-9]*.*; do
		[ -e "$a" ] || continue
		id=$(head -n 1 "$a" | tr -d '\r')
		n=$(sed -n 's/.*"netns" *: *"\([^"]*\)".*/\1/p' "/var/lib/cni/results/kt${bridge#kt}-$id-eth0" 2>/dev/null)
		[ -z "$n" ] || ip netns delete "${n##*/}" 2>/dev/null
	done
	ip link delete "$bridge" 2>/dev/null
fi
rm -rf "$RUN"
