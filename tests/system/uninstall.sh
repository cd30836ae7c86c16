#!/bin/sh
# What tools/install puts under a prefix, its uninstall takes away: all of it, and nothing else.
set -u
build=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
check() { # NAME GOT WANTED
	if [ "$2" = "$3" ]; then
		echo "  ok: $1"
	else
		echo "  FAILED: $1: got '$2', wanted '$3'"
		failures=1
	fi
}
prefix=$(meson introspect "$build" --buildoptions | tr '{' '\n' |
	sed -n 's/.*"name": "prefix", "value": "\([^"]*\)".*/\1/p')

mkdir -p "$work/dest$prefix/bin"
echo mine >"$work/dest$prefix/bin/other"
"$top/tools/install" install "$build" "$prefix" "$work/dest" >"$work/said" 2>&1
check "installs" $? 0
check "the program is there" "$([ -x "$work/dest$prefix/bin/sluice" ] && echo yes)" yes
check "says how many" "$(sed -n 's/.*installed \([0-9]*\) files.*/\1/p' "$work/said")" \
	"$(($(find "$work/dest" ! -type d | wc -l) - 2))"
"$top/tools/install" uninstall "$build" "$prefix" "$work/dest" >"$work/said" 2>&1
check "uninstalls" $? 0
check "only the other's file is left" "$(cd "$work/dest" && find . ! -type d)" ".$prefix/bin/other"
check "no folder of ours is left" "$(find "$work/dest" -type d -name sluice)" ""
"$top/tools/install" uninstall "$build" "$prefix" "$work/dest" >"$work/said" 2>&1
check "twice is an error" $? 1
exit $failures
