#!/bin/sh
# Boots a Kubernetes from BIN (built if absent) in RUN: etcd, API server, controllers, scheduler, and for each node
# containerd and kubelet. Prints the kubeconfig's path. down.sh ends it.
#   up.sh [control|node]      control: no kubelet and no containerd; node (default): all
# NODES: how many, default 1, at most 9: node1, node2 ... What is of one node lies in RUN/nodeN.
# BED: 0 to 9, default 0: has its own ports, bridge and addresses, so several may run beside each other. Device plugins
# are for one of them alone: their folder is fixed in the kubelet.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
BIN=${BIN:-$here/bin} RUN=${RUN:-$here/run} what=${1:-node}
GATES=${GATES:-} NODES=${NODES:-1} BED=${BED:-0}
bridge=kt$BED net=10.88.$((77 + BED)) base=$((26000 + 100 * BED))
ip=$net.1 api=https://127.0.0.1:$base
export PATH="$BIN:/usr/sbin:/sbin:$PATH" GOMAXPROCS=2

# Of two at once, the second waits for the first.
mkdir -p "$BIN"
flock "$BIN" sh "$here/build.sh" "$what" "$BIN"

rm -rf "$RUN"
mkdir -p "$RUN/pki" "$RUN/log" "$RUN/cni"
cd "$RUN"
nodes=
[ "$what" != node ] || nodes=$(seq "$NODES")
start() { # start NAME COMMAND...
	name=$1
	shift
	setsid "$@" >"$RUN/log/$name" 2>&1 </dev/null &
	echo "$!" >"$RUN/$name.pid"
}
upto() { # upto SECONDS COMMAND...
	end=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt $end ] || { echo "not in time: $*" >&2; return 1; }
		sleep 0.2
	done
}

# Nothing forwards the addresses of Services: the API server calls the endpoints of webhooks, and pods find it at the bridge's
# address (KUBERNETES_SERVICE_HOST and _PORT in their environment).
# The certificate of the API server, signed by itself, the key of service accounts, and a token for each component.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=kube -keyout pki/api.key -out pki/api.crt \
	-addext "subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:$ip" 2>/dev/null
openssl ecparam -name prime256v1 -genkey -noout -out pki/sa.key
openssl ec -in pki/sa.key -pubout -out pki/sa.pub 2>/dev/null
: >pki/tokens
for who in admin,admin,system:masters "kcm,system:kube-controller-manager," "sched,system:kube-scheduler," \
	$(for n in $nodes; do echo "node$n,system:node:node$n,system:nodes"; done); do
	name=${who%%,*} user=${who#*,} token=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
	echo "$token,${user%,*},$name,\"${user##*,}\"" >>pki/tokens
	cat >"$name.conf" <<-X
	apiVersion: v1
	kind: Config
	current-context: k
	clusters: [{name: k, cluster: {server: "$api", certificate-authority: "$RUN/pki/api.crt"}}]
	users: [{name: k, user: {token: "$token"}}]
	contexts: [{name: k, context: {cluster: k, user: k}}]
	X
	[ "$name" != admin ] || echo "$token" >admin.token
done

start etcd etcd --data-dir etcd --unsafe-no-fsync --log-level error \
	--listen-client-urls http://127.0.0.1:$((base + 1)) --advertise-client-urls http://127.0.0.1:$((base + 1)) \
	--listen-peer-urls http://127.0.0.1:$((base + 2)) --initial-advertise-peer-urls http://127.0.0.1:$((base + 2)) --initial-cluster default=http://127.0.0.1:$((base + 2))
start api kube-apiserver --etcd-servers=http://127.0.0.1:$((base + 1)) --bind-address=0.0.0.0 --secure-port=$base --enable-aggregator-routing=true \
	--tls-cert-file=pki/api.crt --tls-private-key-file=pki/api.key --token-auth-file=pki/tokens --authorization-mode=Node,RBAC \
	--service-account-issuer=https://kubernetes.default.svc --service-account-key-file=pki/sa.pub --service-account-signing-key-file=pki/sa.key \
	--client-ca-file=pki/api.crt --service-cluster-ip-range=10.99.$BED.0/24 --endpoint-reconciler-type=none --allow-privileged=true --enable-admission-plugins=NodeRestriction \
	--kubelet-preferred-address-types=InternalIP --profiling=false ${GATES:+--feature-gates=$GATES} ${API_FLAGS:-}

if [ "$what" = node ]; then
	ip link show $bridge >/dev/null 2>&1 || { ip link add $bridge type bridge && ip addr add $ip/24 dev $bridge && ip link set $bridge up; }
	cat >cni/10-kt.conflist <<-X
	{"cniVersion":"1.0.0","name":"kt$BED","plugins":[{"type":"bridge","bridge":"$bridge","isGateway":true,"ipMasq":false,
	 "ipam":{"type":"host-local","dataDir":"$RUN/cni-state","ranges":[[{"subnet":"$net.0/24"}]]}}]}
	X
fi
for n in $nodes; do
	d=$RUN/node$n
	mkdir -p "$d/cdi" "$d/kubelet/plugins_registry"
	cat >"$d/containerd.toml" <<-X
	version = 3
	root = "$d/ctrd"
	state = "$d/state"
	disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs"]
	[grpc]
	  address = "$d/ctrd.sock"
	[plugins.'io.containerd.cri.v1.images'.pinned_images]
	  sandbox = "docker.io/local/pause:1"
	[plugins.'io.containerd.cri.v1.runtime']
	  restrict_oom_score_adj = true
	  cdi_spec_dirs = ["$d/cdi"]
	  [plugins.'io.containerd.cri.v1.runtime'.cni]
	    bin_dirs = ["${CNI_BIN:-/usr/lib/cni}"]
	    conf_dir = "$RUN/cni"
	  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
	    runtime_type = "io.containerd.runc.v2"
	    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
	      BinaryName = "$(command -v runc)"
	      SystemdCgroup = false
	[plugins.'io.containerd.nri.v1.nri']
	  disable = false
	  disable_connections = false
	  socket_path = "$d/nri.sock"
	X
	start ctrd$n containerd --config "$d/containerd.toml" --log-level warn
	cat >"$d/kubelet.yaml" <<-X
	apiVersion: kubelet.config.k8s.io/v1beta1
	kind: KubeletConfiguration
	failCgroupV1: false
	failSwapOn: false
	cgroupDriver: cgroupfs
	cgroupRoot: /$bridge-node$n
	address: $ip
	port: $((base + 10 * n))
	healthzPort: $((base + 10 * n + 1))
	readOnlyPort: 0
	authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
	authorization: {mode: AlwaysAllow}
	containerRuntimeEndpoint: unix://$d/ctrd.sock
	resolvConf: ""
	podLogsDir: $d/podlogs
	localStorageCapacityIsolation: false
	evictionHard: {memory.available: 50Mi, nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
	imageGCHighThresholdPercent: 100
	nodeStatusUpdateFrequency: 2s
	syncFrequency: 2s
	$(IFS=,; for g in $GATES; do [ -n "${first:-}" ] || { first=1; echo "featureGates:"; }; echo "  ${g%=*}: ${g#*=}"; done)
	X
	for c in /sys/fs/cgroup/*/; do
		[ ! -e "$c/cgroup.procs" ] || mkdir -p "$c/$bridge-node$n" 2>/dev/null || :
	done
	cpus=/sys/fs/cgroup/cpuset
	[ ! -e "$cpus/cpuset.cpus" ] || for f in cpuset.cpus cpuset.mems; do
		cat "$cpus/$f" >"$cpus/$bridge-node$n/$f"
	done
done

ask() { curl -sf --cacert pki/api.crt -H "Authorization: Bearer $(cat admin.token)" "$api$1"; }
ready() { ask "/api/v1/nodes/$1" | tr -d ' \n' | grep -q '"type":"Ready","status":"True"'; }
upto 180 ask /readyz
# Nodes on paper send no status, and count as well.
[ "$what" = node ] || alone="--controllers=*,-node-lifecycle-controller"
start kcm kube-controller-manager ${alone:-} --kubeconfig=kcm.conf --authentication-kubeconfig=kcm.conf --authorization-kubeconfig=kcm.conf \
	--bind-address=127.0.0.1 --secure-port=$((base + 3)) --leader-elect=false --use-service-account-credentials=true --allocate-node-cidrs=false \
	--service-account-private-key-file=pki/sa.key --root-ca-file=pki/api.crt --profiling=false ${GATES:+--feature-gates=$GATES}
start sched kube-scheduler --kubeconfig=sched.conf --authentication-kubeconfig=sched.conf --authorization-kubeconfig=sched.conf \
	--bind-address=127.0.0.1 --secure-port=$((base + 4)) --leader-elect=false --profiling=false ${GATES:+--feature-gates=$GATES}
for n in $nodes; do
	d=$RUN/node$n
	upto 20 ctr -a "$d/ctrd.sock" version
	for image in pause box; do
		ctr -a "$d/ctrd.sock" -n k8s.io images import "$BIN/image/$image.tar" >/dev/null
	done
	start kubelet$n kubelet --config="$d/kubelet.yaml" --kubeconfig=node$n.conf --hostname-override=node$n --node-ip=$ip \
		--root-dir="$d/kubelet" --cert-dir="$d/kubelet/pki"
done
for n in $nodes; do
	upto 180 ready "node$n"
done
upto 30 ask /api/v1/namespaces/default/serviceaccounts/default
echo "$RUN/admin.conf"
