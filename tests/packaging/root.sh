# shellcheck shell=sh
# Bare Debian systems for tests of what is installed; source it first. The test then runs in a mount namespace of its own.
# After sourcing: $B is the build folder, $TOP the source, $T a private folder.
set -u
case $0 in /*) self=$0 ;; *) self=$PWD/$0 ;; esac
TOP=$(cd "$(dirname "$self")/../.." && pwd)
B=$(cd "${1:?usage: $0 BUILD_DIR}" && pwd)
NAME=$(basename "$self" .sh)
FAILED=0
skip() {
	echo "$NAME: skipped: $*"
	exit 77
}
if [ -z "${SLUICE_TEST_INSIDE-}" ]; then
	[ "$(id -u)" = 0 ] || skip "needs root, for debootstrap and chroot"
	unshare --mount true 2>/dev/null || skip "this machine allows no mount namespaces"
	export SLUICE_TEST_INSIDE=1
	exec timeout -k 10 "${LIMIT:-900}" unshare --mount sh "$self" "$B"
fi
T=$(mktemp -d "${TMPDIR:-/tmp}/sluice-root.XXXXXX") || exit 99
END=:
# The mounts end with the namespace; $T contains mount points until then.
clean_up() {
	$END
	umount -R -l "$T"/*/merged 2>/dev/null
	rm -rf --one-file-system "$T"
}
trap clean_up EXIT
trap 'exit 143' TERM INT HUP

ok() { echo "  ok: $*"; }
fail() {
	echo "  FAILED: $*"
	FAILED=$((FAILED + 1))
}
# check WHAT GOT WANTED
check() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		fail "$1: got '$2', wanted '$3'"
	fi
}
# must WHAT COMMAND...: its output is shown if it fails, and the test ends.
must() {
	must_what=$1
	shift
	if "$@" >"$T/said" 2>&1; then
		ok "$must_what"
		return
	fi
	tail -n 30 "$T/said" | sed 's/^/      /'
	fail "$must_what"
	exit 1
}
# until_true SECONDS COMMAND...
until_true() {
	until_end=$(($(date +%s) + $1))
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$until_end" ] || return 1
		sleep 0.2
	done
}

# bare_root SUITE PACKAGE...: ROOT is a new system of this suite with these packages. The cache keeps the first one made; what the
# test writes goes into $T.
bare_root() {
	root_suite=$1
	shift
	"$TOP/tools/packages" debootstrap || skip "debootstrap cannot be installed"
	[ -e "/usr/share/debootstrap/scripts/$root_suite" ] || skip "debootstrap does not know Debian's $root_suite"
	root_cache=${SLUICE_CACHE:-${HOME:-/tmp}/.cache/sluice}/root-$root_suite-$(echo "$*" | cksum | cut -d ' ' -f 1)
	mkdir -p "$(dirname "$root_cache")"
	exec 8>"$root_cache.lock"
	flock 8
	[ -d "$root_cache" ] || make_root "$root_cache" "$root_suite" "$*" || skip "debootstrap could not make a Debian $root_suite: $(tail -n 1 "$T/debootstrap")"
	exec 8>&-
	mkdir -p "$T/$root_suite/upper" "$T/$root_suite/work" "$T/$root_suite/merged"
	ROOT=$T/$root_suite/merged
	mount -t overlay overlay -o "lowerdir=$root_cache,upperdir=$T/$root_suite/upper,workdir=$T/$root_suite/work" "$ROOT" 2>/dev/null ||
		skip "this machine allows no overlay mount, for a system to throw away"
}
make_root() { # make_root FOLDER SUITE PACKAGES
	make_mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 2>/dev/null | head -n 1)
	rm -rf "$1.new"
	debootstrap --variant=minbase --include="$(echo "ca-certificates $3" | sed 's/  */,/g')" "$2" "$1.new" ${make_mirror:+"$make_mirror"} >"$T/debootstrap" 2>&1 || {
		rm -rf "$1.new"
		return 1
	}
	# Programs of packages start no services here.
	printf '#!/bin/sh\nexit 101\n' >"$1.new/usr/sbin/policy-rc.d"
	chmod 755 "$1.new/usr/sbin/policy-rc.d"
	rm -f "$1.new"/var/cache/apt/archives/*.deb
	mv "$1.new" "$1"
}
