#!/bin/sh
# Boots a one-node Kubernetes from BIN (built if absent) in RUN: etcd, API server, controllers, scheduler, containerd,
# kubelet. Prints the kubeconfig's path. down.sh ends it.
#   up.sh [control|node]      control: no kubelet and no containerd; node (default): all
set -eu
here=$(cd "$(dirname "$0")" && pwd)
BIN=${BIN:-$here/bin} RUN=${RUN:-$here/run} what=${1:-node}
GATES=${GATES:-}
ip=10.88.77.1 api=https://127.0.0.1:26443
export PATH="$BIN:/usr/sbin:/sbin:$PATH" GOMAXPROCS=2

sh "$here/build.sh" "$what" "$BIN"

rm -rf "$RUN"
mkdir -p "$RUN/pki" "$RUN/log" "$RUN/cni" "$RUN/cdi" "$RUN/state" "$RUN/kubelet/plugins_registry"
cd "$RUN"
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

# The certificate of the API server, signed by itself, the key of service accounts, and a token for each component.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=kube -keyout pki/api.key -out pki/api.crt \
	-addext "subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:$ip" 2>/dev/null
openssl ecparam -name prime256v1 -genkey -noout -out pki/sa.key
openssl ec -in pki/sa.key -pubout -out pki/sa.pub 2>/dev/null
: >pki/tokens
for who in admin,admin,system:masters "kcm,system:kube-controller-manager," "sched,system:kube-scheduler," node,system:node:node1,system:nodes; do
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
	--listen-client-urls http://127.0.0.1:22379 --advertise-client-urls http://127.0.0.1:22379 \
	--listen-peer-urls http://127.0.0.1:22380 --initial-advertise-peer-urls http://127.0.0.1:22380 --initial-cluster default=http://127.0.0.1:22380
start api kube-apiserver --etcd-servers=http://127.0.0.1:22379 --bind-address=127.0.0.1 --secure-port=26443 \
	--tls-cert-file=pki/api.crt --tls-private-key-file=pki/api.key --token-auth-file=pki/tokens --authorization-mode=Node,RBAC \
	--service-account-issuer=https://kubernetes.default.svc --service-account-key-file=pki/sa.pub --service-account-signing-key-file=pki/sa.key \
	--client-ca-file=pki/api.crt --service-cluster-ip-range=10.99.0.0/16 --endpoint-reconciler-type=none --allow-privileged=true --enable-admission-plugins=NodeRestriction \
	--kubelet-preferred-address-types=InternalIP --profiling=false ${GATES:+--feature-gates=$GATES}

if [ "$what" = node ]; then
	ip link show kt0 >/dev/null 2>&1 || { ip link add kt0 type bridge && ip addr add $ip/24 dev kt0 && ip link set kt0 up; }
	cat >cni/10-kt.conflist <<-X
	{"cniVersion":"1.0.0","name":"kt","plugins":[{"type":"bridge","bridge":"kt0","isGateway":true,"ipMasq":false,
	 "ipam":{"type":"host-local","dataDir":"$RUN/cni-state","ranges":[[{"subnet":"10.88.77.0/24"}]]}}]}
	X
	cat >containerd.toml <<-X
	version = 3
	root = "$RUN/ctrd"
	state = "$RUN/state"
	disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs"]
	[grpc]
	  address = "$RUN/ctrd.sock"
	[plugins.'io.containerd.cri.v1.images'.pinned_images]
	  sandbox = "docker.io/local/pause:1"
	[plugins.'io.containerd.cri.v1.runtime']
	  restrict_oom_score_adj = true
	  cdi_spec_dirs = ["$RUN/cdi"]
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
	  socket_path = "$RUN/nri.sock"
	X
	start ctrd containerd --config containerd.toml --log-level warn
	cat >kubelet.yaml <<-X
	apiVersion: kubelet.config.k8s.io/v1beta1
	kind: KubeletConfiguration
	failCgroupV1: false
	failSwapOn: false
	cgroupDriver: cgroupfs
	address: $ip
	port: 20250
	healthzPort: 20248
	readOnlyPort: 0
	authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
	authorization: {mode: AlwaysAllow}
	containerRuntimeEndpoint: unix://$RUN/ctrd.sock
	resolvConf: ""
	podLogsDir: $RUN/podlogs
	localStorageCapacityIsolation: false
	evictionHard: {memory.available: 50Mi, nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
	imageGCHighThresholdPercent: 100
	nodeStatusUpdateFrequency: 2s
	syncFrequency: 2s
	$(IFS=,; for g in $GATES; do [ -n "${first:-}" ] || { first=1; echo "featureGates:"; }; echo "  ${g%=*}: ${g#*=}"; done)
	X
fi

ask() { curl -sf --cacert pki/api.crt -H "Authorization: Bearer $(cat admin.token)" "$api$1"; }
ready() { ask /api/v1/nodes/node1 | tr -d ' \n' | grep -q '"type":"Ready","status":"True"'; }
upto 60 ask /readyz
start kcm kube-controller-manager --kubeconfig=kcm.conf --authentication-kubeconfig=kcm.conf --authorization-kubeconfig=kcm.conf \
	--bind-address=127.0.0.1 --secure-port=20257 --leader-elect=false --use-service-account-credentials=true --allocate-node-cidrs=false \
	--service-account-private-key-file=pki/sa.key --root-ca-file=pki/api.crt --profiling=false ${GATES:+--feature-gates=$GATES}
start sched kube-scheduler --kubeconfig=sched.conf --authentication-kubeconfig=sched.conf --authorization-kubeconfig=sched.conf \
	--bind-address=127.0.0.1 --secure-port=20259 --leader-elect=false --profiling=false ${GATES:+--feature-gates=$GATES}
if [ "$what" = node ]; then
	upto 20 ctr -a "$RUN/ctrd.sock" version
	for image in pause box; do
		ctr -a "$RUN/ctrd.sock" -n k8s.io images import "$BIN/image/$image.tar" >/dev/null
	done
	start kubelet kubelet --config=kubelet.yaml --kubeconfig=node.conf --hostname-override=node1 --node-ip=$ip --root-dir="$RUN/kubelet" --cert-dir="$RUN/kubelet/pki"
	upto 60 ready
fi
upto 30 ask /api/v1/namespaces/default/serviceaccounts/default
echo "$RUN/admin.conf"
