# shellcheck shell=sh
# tests/kubernetes/paper.sh: nodes on paper, for scenes of the control plane. Node objects whose status is patched, slices as sluice-kube node
# publishes them, and the node's side of parking played by the scene. Sourced behind bed.sh.

api() { # api METHOD PATH [TYPE BODY]: the body may be - for standard input
	method=$1 path=$2
	shift 2
	curl -s --fail-with-body --max-time 30 --cacert "$RUN/pki/api.crt" -H "Authorization: Bearer $(cat "$RUN/admin.token")" -X "$method" \
		${1:+-H "Content-Type: $1" --data-binary "$2"} "$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$RUN/admin.conf")$path"
}
slice() { # slice NODE GPUS GIB [TAINT]: of GPUs of that memory
	devices=
	for g in $(seq 0 $(($2 - 1))); do
		devices="$devices${devices:+,}{\"name\":\"gpu-$g\",\"allowMultipleAllocations\":true,\"attributes\":{\"swap\":{\"bool\":true}},
		\"capacity\":{\"memory\":{\"value\":\"$3Gi\",\"requestPolicy\":{\"default\":\"$3Gi\",\"validRange\":{\"min\":\"1Mi\",\"step\":\"1Mi\",\"max\":\"$3Gi\"}}},
		\"memoryLimit\":{\"value\":\"1024Ti\",\"requestPolicy\":{\"default\":\"0\",\"validRange\":{\"min\":\"0\",\"step\":\"1Mi\",\"max\":\"$3Gi\"}}},
		\"compute\":{\"value\":\"100\",\"requestPolicy\":{\"default\":\"0\",\"validRange\":{\"min\":\"0\",\"step\":\"1\",\"max\":\"100\"}}},
		\"computeLimit\":{\"value\":\"1M\",\"requestPolicy\":{\"default\":\"0\",\"validRange\":{\"min\":\"0\",\"step\":\"1\",\"max\":\"100\"}}}}}"
	done
	printf '{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"%s-gpu.sluice.dev"},"spec":{"driver":"gpu.sluice.dev","nodeName":"%s",
	"pool":{"name":"%s","generation":1,"resourceSliceCount":1},"devices":[%s]}}' "$1" "$1" "$1" "$devices"
}
node() { # node NAME GPUS GIB [CPUS] [LABELS]: ready
	api POST /api/v1/nodes application/json "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"$1\",\"labels\":{\"kubernetes.io/hostname\":\"$1\"${5:+,$5}}}}" >/dev/null &&
		api PATCH "/api/v1/nodes/$1/status" application/strategic-merge-patch+json "{\"status\":{\"allocatable\":{\"cpu\":\"${4:-64}\",\"memory\":\"256Gi\",\"pods\":\"110\"},
		\"capacity\":{\"cpu\":\"${4:-64}\",\"memory\":\"256Gi\",\"pods\":\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Paper\",\"lastHeartbeatTime\":\"$(date -u +%FT%TZ)\"}]}}" >/dev/null &&
		untaint "$1" && { [ "$2" = 0 ] || api POST /apis/resource.k8s.io/v1/resourceslices application/json "$(slice "$1" "$2" "$3")" >/dev/null; }
}
# The controllers taint new nodes, and those that send no status.
untaint() { api PATCH "/api/v1/nodes/$1" application/merge-patch+json '{"spec":{"taints":null}}' >/dev/null; }
server() { sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$RUN/admin.conf"; }
many() { # many PATH: a POST for each line of standard input, over few connections
	mkdir -p "$work/many"
	awk -v url="$(server)$1" -v ca="$RUN/pki/api.crt" -v token="$(cat "$RUN/admin.token")" -v work="$work" '{
		file = work "/many/" NR; print > file; close(file)
		if (NR > 1) print "next"
		printf "url=%s\ncacert=%s\nheader=\"Authorization: Bearer %s\"\nheader=\"Content-Type: application/json\"\ndata-binary=@%s\noutput=/dev/null\nsilent\nfail\n", url, ca, token, file
	}' >"$work/many.conf"
	curl -Z --parallel-max 8 -K "$work/many.conf" 2>>"$work/curl.log" || bad "what is to be created is refused ($1)"
}
paper_nodes() { # paper_nodes COUNT GPUS GIB: n1, n2 ... at once
	seq "$1" | awk '{ printf "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n%d\"},\"status\":{\"allocatable\":{\"cpu\":\"64\",\"memory\":\"256Gi\",\"pods\":\"110\"},\"capacity\":{\"cpu\":\"64\",\"memory\":\"256Gi\",\"pods\":\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}\n", NR }' |
		many /api/v1/nodes
	template=$(slice NODE "$2" "$3" | tr -d '\n\t')
	seq "$1" | awk -v t="$template" '{ s = t; gsub(/NODE/, "n" NR, s); print s }' | many /apis/resource.k8s.io/v1/resourceslices
	# New nodes have a taint until a controller finds that they are well.
	seq "$1" | awk -v url="$(server)" -v ca="$RUN/pki/api.crt" -v token="$(cat "$RUN/admin.token")" '{
		if (NR > 1) print "next"
		printf "url=%s/api/v1/nodes/n%d\ncacert=%s\nrequest=PATCH\nheader=\"Authorization: Bearer %s\"\nheader=\"Content-Type: application/merge-patch+json\"\ndata={\"spec\":{\"taints\":null}}\noutput=/dev/null\nsilent\nfail\n", url, NR, ca, token
	}' >"$work/many.conf"
	curl -Z --parallel-max 8 -K "$work/many.conf" 2>>"$work/curl.log" || bad "taints stay"
}
share() { # share NAMESPACE NAME CAPACITY [COUNT]: a template for claims
	amounts=
	[ -z "$3" ] || amounts=",\"capacity\":{\"requests\":{$3}}"
	api POST "/apis/resource.k8s.io/v1/namespaces/$1/resourceclaimtemplates" application/json "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaimTemplate\",\"metadata\":{\"name\":\"$2\"},
	\"spec\":{\"spec\":{\"devices\":{\"requests\":[{\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.sluice.dev\",\"count\":${4:-1}$amounts}}]}}}}" >/dev/null
}
paper_pod() { # paper_pod NAMESPACE NAME TEMPLATE [SPEC] [METADATA]: a pod of ours; parts of its spec and metadata in JSON
	claims='' uses=''
	[ -z "$3" ] || claims=",\"resourceClaims\":[{\"name\":\"gpu\",\"resourceClaimTemplateName\":\"$3\"}]" uses=',"claims":[{"name":"gpu"}]'
	api POST "/api/v1/namespaces/$1/pods" application/json "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"$2\"${5:+,$5}},\"spec\":{\"schedulerName\":\"${SCHEDULER:-sluice}\",
	\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":0$claims,\"containers\":[{\"name\":\"main\",\"image\":\"none\",
	\"resources\":{\"requests\":{\"cpu\":\"1\"}$uses}}]${4:+,$4}}}" >/dev/null
}
limit_pod() { # limit_pod NAMESPACE NAME COUNT [SPEC] [METADATA]: a pod of ours that asks for whole GPUs by limits
	api POST "/api/v1/namespaces/$1/pods" application/json "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"$2\"${5:+,$5}},\"spec\":{\"schedulerName\":\"sluice\",
	\"restartPolicy\":\"Never\",\"terminationGracePeriodSeconds\":0,\"containers\":[{\"name\":\"main\",\"image\":\"none\",
	\"resources\":{\"requests\":{\"cpu\":\"1\"},\"limits\":{\"sluice.dev/gpu\":\"$3\"}}}]${4:+,$4}}}" >/dev/null
}
space() { # space NAME: with its account, without which pods are refused
	kubectl create namespace "$1" >/dev/null && upto 30 api GET "/api/v1/namespaces/$1/serviceaccounts/default"
}
on() { api GET "/api/v1/namespaces/$1/pods/$2" | jq -r '.spec.nodeName // ""'; } # on NAMESPACE POD: its node
placed() { [ -n "$(on "$1" "$2")" ]; }
why() { api GET "/api/v1/namespaces/$1/pods/$2" | jq -r '.status.conditions[]? | select(.type=="PodScheduled" and .status=="False") | .message'; }
says() { why "$1" "$2" | grep -qF -- "$3"; }
ordered() { [ "$(api GET "/api/v1/namespaces/$1/pods/$2" | jq -r '.status.conditions[]? | select(.type=="sluice.dev/Parked") | .status')" = "$3" ]; } # ordered NAMESPACE POD True|False
claim_of() { api GET "/api/v1/namespaces/$1/pods/$2" | jq -r '.status.resourceClaimStatuses[0].resourceClaimName // .status.extendedResourceClaimStatus.resourceClaimName // .spec.resourceClaims[0].resourceClaimName'; }
confirm() { # confirm NAMESPACE POD True|False: the node says that its memory has left the GPU, or is back
	claim=$(claim_of "$1" "$2")
	entry=$(api GET "/apis/resource.k8s.io/v1/namespaces/$1/resourceclaims/$claim" | jq -c --arg s "$3" --arg t "$(date -u +%FT%TZ)" \
		'{status:{devices:[.status.allocation.devices.results[]|{driver,pool,device,shareID,conditions:[{type:"Parked",status:$s,reason:"Paper",message:"",lastTransitionTime:$t}]}]}}')
	api PATCH "/apis/resource.k8s.io/v1/namespaces/$1/resourceclaims/$claim/status" application/merge-patch+json "$entry" >/dev/null
}
# Of what all claims have: GPUs on which more is allocated than the slices publish.
overcommitted() {
	api GET /apis/resource.k8s.io/v1/resourceclaims | jq -r '[.items[].status.allocation.devices.results[]? | {gpu: (.pool + "/" + .device), mib: (.consumedCapacity.memory |
		if endswith("Gi") then (.[:-2]|tonumber*1024) else (.[:-2]|tonumber) end)}] | group_by(.gpu)[] | {gpu: .[0].gpu, mib: (map(.mib)|add)} | select(.mib > '"$(($1 * 1024))"') | .gpu'
}
scheduler() { # scheduler [ARGUMENTS...]: one more replica; its process is $scheduler
	"$build/sluice-kube" scheduler --kubeconfig "$work/scheduler.conf" --log debug "$@" >>"$work/scheduler.log" 2>&1 &
	scheduler=$!
	schedulers="${schedulers:-} $scheduler"
}
unclaimed() { [ "$(api GET /apis/resource.k8s.io/v1/resourceclaims | jq '.items | length')" = 0 ]; }
