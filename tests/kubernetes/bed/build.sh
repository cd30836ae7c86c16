#!/bin/sh
# build.sh control|node BIN: builds what is absent from BIN. TAGS=kubectl builds that in, too.
set -eu
here=$(cd "$(dirname "$0")" && pwd) what=$1 BIN=$2
mkdir -p "$BIN"
# A collector that never runs, no debug information and no inlining: two fifths less to compile.
export CGO_ENABLED=0 GOFLAGS='-buildvcs=false -trimpath' GOGC=off GOTOOLCHAIN=local
gc='all=-dwarf=false -l' ver=k8s.io/component-base/version
if [ ! -x "$BIN/hyper" ]; then
	(cd "$here/mod/kube" && go build -tags "${TAGS:-none}" -gcflags "$gc" -o "$BIN/hyper" \
		-ldflags "-s -w -X $ver.gitVersion=v1.37.2 -X $ver.gitMajor=1 -X $ver.gitMinor=37" .)
fi
for name in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet ${TAGS:-}; do
	ln -sf hyper "$BIN/$name"
done
[ "$what" = node ] || exit 0
if [ ! -x "$BIN/containerd" ]; then
	d=github.com/containerd/containerd/v2/cmd
	(cd "$here/mod/ctrd" && go build -tags 'no_btrfs no_zfs no_devmapper no_tracing' -gcflags "$gc" -ldflags '-s -w' -o "$BIN/" $d/ctr $d/containerd $d/containerd-shim-runc-v2)
fi
if [ ! -f "$BIN/image/box.tar" ]; then
	mkdir -p "$BIN/image"
	cd "$BIN/image"
	mkdir -p p b/bin b/etc b/tmp b/opt
	gcc -static -Os -s -o p/pause "$here/image/pause.c"
	cp "$(command -v busybox)" b/bin/busybox
	for a in sh sleep cat env ls echo true head wc grep; do ln -sf busybox b/bin/$a; done
	python3 "$here/image/mkimage.py" pause.tar docker.io/local/pause:1 '["/pause"]' p
	python3 "$here/image/mkimage.py" box.tar docker.io/local/box:1 '["/bin/sh"]' b
fi
