#!/bin/sh
# metrics-docs.sh PROGRAM FILE: the table of metrics in FILE is the one that the daemon's list gives.
set -eu
table=$(mktemp)
trap 'rm -f "$table"' EXIT
sed -n '/^| metric |/,/^$/p' "$2" | sed '/^$/d' >"$table"
"$1" docs | diff -u "$table" - || {
	echo "$2 is behind src/daemon/web/metrics.def; paste the output of '$(basename "$1") docs'" >&2
	exit 1
}
