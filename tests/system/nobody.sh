# Sourced before lib.sh by a test that must not run as root: root runs it again as the user
# `nobody`.
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
if [ "$(id -u)" = 0 ] && [ -z "${SLUICE_TEST_INSIDE-}" ]; then
	# shellcheck disable=SC2086 # a list of words
	if ! $nobody test -x "$1/sluiced" -a -r "$0"; then
		echo "  skipped: $1 cannot be read by others"
		exit 77
	fi
	# shellcheck disable=SC2086 # a list of words
	exec $nobody env TMPDIR=/tmp HOME=/nonexistent sh "$0" "$1"
fi
