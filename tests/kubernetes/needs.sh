# shellcheck shell=sh
# What the scenes need of the machine, for a script that has set `here` (this folder) and `build`. Sets `cache`: what is built once.
# shellcheck disable=SC2154 # here, build
skip() {
	echo "kubernetes: skipped: $*"
	exit 77
}
[ "$(id -u)" = 0 ] || skip "needs root, for containers"
command -v go >/dev/null 2>&1 || skip "Go is not installed, and Kubernetes is built with it"
[ -x "$build/sluice-kube" ] || skip "sluice-kube was not built (libnghttp2 and libcurl)"
"$here/../../tools/packages" runc containernetworking-plugins busybox-static openssl curl ||
	skip "runc, containernetworking-plugins and busybox-static cannot be installed"
cache=${SLUICE_CACHE:-${HOME:-/tmp}/.cache/sluice}/kubernetes-$(cat "$here"/bed/mod/*/go.* "$here"/bed/mod/*/*.go "$here/bed/build.sh" | cksum | cut -d ' ' -f 1)
mkdir -p "$cache" || skip "$cache cannot be made"
