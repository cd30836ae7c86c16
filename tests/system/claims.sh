#!/bin/sh
# Workloads of claims, as pods have them: each was given a GPU for good, and the node lets it use another one while that is not wanted. Without
# Kubernetes; tests/kubernetes/move plays the same there.
export BOX='--gpus 2 --memory 2GiB'
export LIMIT=280
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
config 'host_memory: 4GiB'
config 'detach_contexts: yes'
daemon_start

uuid() { "$P/nvml-view" | sed -n "s/.*\"what\":\"device\",\"index\":$1,\"uuid\":\"\([^\"]*\)\".*/\1/p"; }
uuid_0=$(uuid 0) uuid_1=$(uuid 1)
check "two GPUs" "$(echo "$uuid_0 $uuid_1" | grep -c "GPU-.* GPU-")" = 1
# claim_as NAME GPU REQUEST LIMIT [reaches]: status 75 while another one leaves that GPU.
claim_as() {
	claim_name=$1 claim_gpu=$2
	shift 2
	claim_uuid=
	eval "claim_uuid=\$uuid_$claim_gpu"
	"$B/tests/system/claim" add "$T/s" "$claim_name" "$claim_uuid" "$@" >"$T/$claim_name.claim"
}
claim() {
	CHECKS=$((CHECKS + 1))
	claim_as "$@" || fail "no claim $1: status $?: $(cat "$T/$1.claim")"
}
unclaim() { "$B/tests/system/claim" end "$T/s" "$1" >/dev/null; }
# As the program of a container: all that it is told is in its environment. CONTAINER: words before the program.
inside() {
	inside_name=$2
	while [ "$1" != -- ]; do shift; done
	shift
	# shellcheck disable=SC2086 # words
	exec env -u SLUICE_WORKLOAD "SLUICE_SOCKET=$(json folder <"$T/$inside_name.claim")/sluiced.sock" CUDA_DEVICE_ORDER=PCI_BUS_ID \
		"CUDA_VISIBLE_DEVICES=$(cat "$T/$inside_name.sees")" "LD_PRELOAD=${SLUICE_LIBRARY:-$B/libsluice.so}" ${CONTAINER-} "$@"
}
# shellcheck disable=SC2034 # swap-lib.sh starts programs by it
RUN=inside
# pod NAME GPU REQUEST LIMIT [reaches]
pod() {
	claim "$@"
	eval "echo \"\$uuid_$2\"" >"$T/$1.sees"
	swapper "$1"
}
end_pod() {
	end_swapper "$1"
	unclaim "$1"
}
# One that is on its way is on no GPU.
both() { echo "$(where a)-$(where b)"; }
apart() { both | grep -Eq '^(0-1|1-0)$'; }
together() { both | grep -Eq '^(0-0|1-1)$'; }
events() { "$B/sluice" events --last 100 >"$T/events" && echo "$T/events"; }

note "--- two that were given one GPU spread over both, and make room for one that was given the other"
for name in a b; do
	pod $name 0 900 1800 reaches
	check "$name may go to both" "$(json reach <"$T/$name.claim")" = 3
	ok $name alloc m 200m
	ok $name fill m 7
done
check "one goes to the other GPU" "$(until_true 40 apart && echo yes)" = yes
contents a "where it is"
contents b "where it is"
ok a alloc n 400m
claim_as whole 1 1800 1800 reaches
check "the next must wait" $? = 75
check_file "for another to leave" "$T/whole.claim" 'leaving its GPUs'
check "and then has its GPU" "$(until_true 60 claim_as whole 1 1800 1800 reaches && echo yes)" = yes
check "the two share one" "$(until_true 20 together && echo yes)" = yes
check "which is theirs" "$(where a)" = 0
echo "$uuid_1" >"$T/whole.sees"
swapper whole
ok whole alloc m 700m
ok whole fill m 9
check "it is on its own" "$(where whole)" = 1
for name in a b whole; do contents $name "with three"; done
check_file "an event tells" "$(events)" '[ab] goes to GPU 0'

note "--- faults while a guest is away"
end_pod whole
check "they spread again" "$(until_true 100 apart && echo yes)" = yes
claim_as whole 1 1800 1800 reaches
check "again the next must wait" $? = 75
daemon_kill
daemon_start
check "also for the next daemon" "$(until_true 60 claim_as whole 1 1800 1800 reaches && echo yes)" = yes
check "the two share one" "$(until_true 20 together && echo yes)" = yes
for name in a b; do contents $name "after a daemon"; done
claim a 0 900 1800 reaches
check "the next daemon knows where it may go" "$(json reach <"$T/a.claim")" = 3
unclaim whole
check "they spread again" "$(until_true 100 apart && echo yes)" = yes
guest=a
[ "$(where a)" = 1 ] || guest=b
claim_as whole 1 1800 1800 reaches
check "the next must wait" $? = 75
kill_swapper $guest
unclaim $guest
check "the dead one leaves at once" "$(until_true 20 claim_as whole 1 1800 1800 reaches && echo yes)" = yes
unclaim whole
for name in a b; do [ $name = $guest ] || end_pod $name; done
check_books_empty

note "--- a guest with a compute request makes room for one"
export COMPUTE=500
for name in a b; do
	pod $name 0 100 1800 reaches
	ok $name alloc m 200m
	ok $name fill m 5
done
check "they spread" "$(until_true 100 apart && echo yes)" = yes
COMPUTE=600
claim_as whole 1 100 1800 reaches
check "the next must wait" $? = 75
check "and then has its GPU" "$(until_true 60 claim_as whole 1 100 1800 reaches && echo yes)" = yes
check "the two share one" "$(until_true 20 together && echo yes)" = yes
for name in a b; do
	contents $name "with its compute request"
	end_pod $name
done
unclaim whole
unset COMPUTE
check_books_empty

note "--- a user moves one; what was not given the nodes stays"
pod fixed 0 500 500
check "it may go nowhere" "$(json reach <"$T/fixed.claim")" = 0
move fixed --gpu 1
check "it is refused" $? != 0
check_file "and says why" "$T/move.out" 'started without the device nodes'
end_pod fixed
pod one 0 500 500 reaches
ok one alloc m 100m
ok one fill m 3
move one --gpu 1 || fail "it cannot be moved: $(cat "$T/move.out")"
check "it is there" "$(until_true 20 is_on one 1 && echo yes)" = yes
contents one
# A container of it starts again: it is told the GPU that the claim has, and gets the one of today.
cp "$T/one.claim" "$T/again.claim"
cp "$T/one.sees" "$T/again.sees"
swapper again
ok again alloc m 100m
check "its next process is beside it" "$(where again)" = 1
end_swapper again
"$B/sluice" set one --detach-after 1s >/dev/null || fail "set"
check "idle, it leaves its GPU whole" "$(until_true 30 is_on one "" && echo yes)" = yes
contents one "called back"
check "it is back" "$(until_true 20 is_on one 1 && echo yes)" = yes
"$B/sluice" set one --detach-after 0 >/dev/null || fail "set"
claim one 0 500 500 reaches
check "the claim is as it was" "$(json reach <"$T/one.claim")" = 3
if [ "$(id -u)" = 0 ] && unshare -fp true 2>/dev/null; then
	note "--- in a pid namespace, as root of a container"
	CONTAINER='unshare -fp --kill-child setpriv --bounding-set -all,+chown,+kill'
	pod inner 0 500 500 reaches
	eval "PID_inner=$(pgrep -P "$(pid_of inner)")"
	ok inner alloc m 50m
	ok inner fill m 4
	move inner --gpu 1 || fail "it cannot be moved: $(cat "$T/move.out")"
	check "it is there" "$(until_true 20 is_on inner 1 && echo yes)" = yes
	contents inner
	caps() { sed -n 's/^CapPrm:\t//p' "/proc/$1/status"; }
	check "a helper has its capabilities, and no more" \
		"$(for helper in $(pgrep -P "$DAEMON" sluice-move); do caps "$helper"; done | grep -c "$(caps "$(pid_of inner)")")" = 1
	echo exit >"$T/inner.in"
	until_true 20 sh -c "! kill -0 $(pid_of inner) 2>/dev/null"
	unclaim inner
	CONTAINER=
fi
end_pod one
check_books_empty

note "--- without the setting nothing goes anywhere"
sed -i 's/^detach_contexts: yes/detach_contexts: no/' "$CONFIG"
kill -HUP "$DAEMON"
for name in a b; do
	pod $name 0 900 1800 reaches
	check "$name stays" "$(json reach <"$T/$name.claim")" = 0
	ok $name alloc m 10m
done
claim_as whole 0 1800 1800 reaches
check "a claim on their GPU is refused at once" $? = 1
check_file "with the reason" "$T/whole.claim" "does not fit"
for name in a b; do end_pod $name; done
check_books_empty
finish
