# shellcheck shell=sh
# tests/kubernetes/bed.sh: what the scenes beside it share; each sources it with BUILD as its first argument. A scene boots a real Kubernetes (boot),
# starts sluiced and sluice-kube on software GPUs (nodes), and plays. Needs root and Go, which builds Kubernetes once (4 to 5 minutes
# on two free cores; then it is kept). Exit status 77 and a line that says so where they are not there.
# BED=N (0 to 9) chooses ports and addresses, so that several scenes can run beside each other; KEEP=1 keeps logs.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-build}" && pwd) || exit 2
. "$here/needs.sh"
# A bed has ports and addresses of its own.
export BED="${BED:-0}" NODE_ARGS="${NODE_ARGS:-}"
exec 9>"${TMPDIR:-/tmp}/sluice-kubernetes-$BED.lock"
flock -w 900 9 || skip "another one runs; BED=N (0 to 9) has ports of its own"
work=$(mktemp -d /tmp/sluice-kube-XXXXXX)
export BIN="$cache" RUN="$work/run" TAGS=kubectl KUBECONFIG="$work/run/admin.conf" HERE="$here" BUILD="$build" WORK="$work"
boxes=
cleanup() {
	touch "$work/end"
	# shellcheck disable=SC2086 # words are meant
	[ -z "$boxes" ] || wait $boxes
	sh "$here/bed/down.sh" >/dev/null 2>&1
	[ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
passed=0
kubectl() { timeout 60 "$cache/kubectl" "$@"; }
ok() {
	passed=$((passed + 1))
	echo "  ok  $*"
}
bad() {
	echo "  BAD $*"
	echo "--- pods"
	kubectl get pods -o wide
	kubectl get events --sort-by=.lastTimestamp | tail -n 15
	for name in $(kubectl get pods --field-selector status.phase=Failed -o 'jsonpath={.items[*].metadata.name}'); do
		echo "--- pod $name"
		kubectl logs "$name" --all-containers --tail 10
	done
	for log in "$work"/node*/*.log; do
		echo "--- $log"
		tail -n 25 "$log"
	done
	exit 1
}
upto() { # upto SECONDS COMMAND...
	limit=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt $limit ] || return 1
		sleep 0.3
	done
}
phase() { kubectl get pod "$1" -o 'jsonpath={.status.phase}'; }
is() { [ "$(phase "$1")" = "$2" ]; }
told() { kubectl get events --field-selector "involvedObject.name=$1" -o 'jsonpath={.items[*].message}' | grep -q -- "$2"; }
pod() { # pod NAME TEMPLATE COMMAND...
	name=$1 template=$2
	shift 2
	words=$(printf ', "%s"' "$@")
	kubectl apply -f - >/dev/null <<-X
	apiVersion: v1
	kind: Pod
	metadata: {name: $name}
	spec:
	  restartPolicy: Never
	  terminationGracePeriodSeconds: 1
	  resourceClaims: [{name: gpu, resourceClaimTemplateName: $template}]
	  containers:
	  - name: main
	    image: docker.io/local/box:1
	    imagePullPolicy: Never
	    command: [${words#, }]
	    env: [{name: SLUICE_WORKLOAD, value: "00112233445566778899aabbccddeeff"}]
	    resources: {claims: [{name: gpu}]}
	X
}
template() { # template NAME CAPACITY
	kubectl apply -f - >/dev/null <<-X
	apiVersion: resource.k8s.io/v1
	kind: ResourceClaimTemplate
	metadata: {name: $1}
	spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.sluice.dev$2}}]}}}
	X
}
tenant() { # tenant NAME TEMPLATE BYTES MS: fills BYTES, works half of the time, and compares at its end
	pod "$1" "$2" "$build/tests/programs/tenant" --bytes "$3" --work 50 --ms "$4"
}
ended_well() {
	upto 120 is "$1" Succeeded && kubectl logs "$1" | grep -q '"event":"end","wrong":0,"ooms":0'
}
# Its locks are free once all of its threads are nothing but zombies, or not even that.
dead() { ! cat /proc/"$1"/task/*/status 2>/dev/null | grep -q '^State:.[^ZX]'; }
crash() { # crash sluiced|kube [NODE]
	pid=$(cat "$work/node${2:-1}/$1.pid")
	kill -9 "$pid"
	upto 20 dead "$pid"
}
reborn() { # reborn api|etcd|kcm|kubelet1: killed, and started again as it was
	pid=$(cat "$RUN/$1.pid") part=$1
	tr '\0' '\n' <"/proc/$pid/cmdline" >"$work/command"
	kill -9 "$pid"
	upto 20 sh -c "! grep -q '^State:.[^ZX]' /proc/$pid/status" || return 1
	set --
	while IFS= read -r word; do set -- "$@" "$word"; done <"$work/command"
	(cd "$RUN" && PATH="$cache:/usr/sbin:/sbin:$PATH" exec setsid "$@" >>"$RUN/log/$part" 2>&1 </dev/null) &
	echo "$!" >"$RUN/$part.pid"
}
start() { # start sluiced|kube [NODE]: within its box
	touch "$work/node${2:-1}/start.$1"
	upto 20 test ! -e "$work/node${2:-1}/start.$1"
}
sluice() { # sluice NODE ARGUMENTS...: the node's own command line
	node=$1
	shift
	SLUICE_SOCKET="$work/node$node/s/sluiced.sock" "$build/sluice" "$@"
}
slices() { kubectl get resourceslices -o 'jsonpath={.items[*].metadata.name}'; }
lists() { [ "$(sluice "${2:-1}" ps | grep -c "pod default/")" = "$1" ]; } # lists COUNT [NODE]
gone() { [ -z "$(find "$work"/run/node*/cdi "$work"/node*/s/entries -mindepth 1)" ]; }
bare() { # bare [control|node]: a Kubernetes with NODES nodes, 1 by default, and nothing of ours
	sh "$here/bed/up.sh" "${1:-node}" >"$work/up.log" 2>&1 || {
		tail -n 20 "$work/up.log"
		bad "Kubernetes does not start"
	}
}
boot() { # boot [control|node]
	bare "$@"
	# With the rights that the guide gives it, and no more.
	kubectl create namespace sluice >/dev/null
	kubectl apply -f "$here/../../docs/kubernetes/rbac.yaml" >/dev/null || bad "the roles are refused"
	kubectl apply -f "$here/../../docs/kubernetes/class.yaml" >/dev/null || bad "the DeviceClass is refused"
}
account() { # account NAME FILE [NODE]: a kubeconfig with the rights of a service account of ours, as a pod on that node has them
	upto 30 kubectl -n sluice get serviceaccount "$1" || bad "no service account $1"
	token=$(kubectl -n sluice create token "$1" ${3:+--bound-object-kind Node --bound-object-name "$3"}) || bad "no token for $1"
	sed "s/token: \"[^\"]*\"/token: \"$token\"/" "$KUBECONFIG" >"$2"
	grep -qF "$token" "$2" || bad "the kubeconfig keeps its token"
}
# node N ARGUMENTS...: sluiced and sluice-kube on one node, on software GPUs of its own (sluice softgpu ARGUMENTS). NODE_ARGS: what sluice-kube
# node is given besides.
node() {
	n=$1
	shift
	mkdir -p "$work/node$n"
	account sluice-node "$work/node$n/kube.conf" "node$n"
	"$build/sluice" softgpu "$@" --shared -- "$here/box" "$n" >"$work/node$n/box.log" 2>&1 &
	boxes="$boxes $!"
}
published() { # published N
	case ${NODE_ARGS:-} in *--device-plugin*) return ;; esac
	upto 30 sh -c "'$cache/kubectl' get resourceslices | grep -q node$1-gpu.sluice.dev" || bad "the GPUs of node$1 are not published"
}
nodes() { # nodes ARGUMENTS...: all nodes
	for i in $(seq "${NODES:-1}"); do
		node "$i" "$@"
	done
	for i in $(seq "${NODES:-1}"); do
		published "$i"
	done
}
