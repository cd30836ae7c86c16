#!/bin/sh
# The walks of the guide, typed as they stand there; see walk.py. WALK=-v prints what was said, to be put into the page.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
: "${SLUICE_SOURCE:?names the source folder}"
[ -z "$is_sanitized" ] || skip 'the library of a sanitized build cannot be loaded into a program'
[ -x "$SLUICE_BUILD/tests/programs/tenant" ] || skip 'no test programs'
for program in bash python3; do
	command -v $program >/dev/null || skip "no $program"
done
export PYTHONDONTWRITEBYTECODE=1
for page in "$SLUICE_SOURCE"/docs/guide/walk-*.md; do
	name=$(basename "$page" .md)
	expect "$name" 0 'lines typed' timeout -k 5 100 python3 "$(dirname "$0")/walk.py" "$page" "$SLUICE_BUILD" "$work/$name"
	[ -z "${WALK-}" ] || echo "$out"
done
finish
