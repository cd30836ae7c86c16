#!/bin/sh
# rows - how the parts of tools/gpu-check write down what they found
#
# A row is a line of the file $ROWS: six fields with a tab between them.
#	column   software, or card
#	part     what tools/gpu-check --help lists
#	name     of the row in its part
#	verdict  ok, failed, skipped, missing (it could not run here), or figure (there is nothing to judge)
#	text     one line for people
#	log      the end of what was printed, for a failure
# Fields hold printable ASCII; a backslash and a line's end are written as JSON has them. The caller of the part sets
# $COLUMN and $PART. tools/gpu-table makes Markdown and JSON of the rows.
# shellcheck disable=SC2034 # STATUS is for the parts
encode() {
	tr '\t' ' ' | LC_ALL=C tr -cd '\12\40-\176' | sed 's/\\/\\\\/g' | awk '{ printf "%s%s", (NR > 1 ? "\\n" : ""), $0 }'
}
# row NAME VERDICT TEXT [LOG-FILE]
row() {
	row_log=
	[ -z "${4-}" ] || row_log=$(tail -n "${LOG_LINES:-30}" "$4" | cut -c 1-300 | encode)
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$COLUMN" "$PART" "$(printf %s "$1" | encode)" "$2" \
		"$(printf %s "$3" | tr '\n' ' ' | encode)" "$row_log" >>"$ROWS"
}
# bounded SECONDS LOG COMMAND...: runs it for so long at most; its exit status is in $STATUS, 124 if it was ended. A
# signal to this shell ends it, too.
bounded() {
	bounded_limit=$1 bounded_log=$2
	shift 2
	timeout -k 10 "$bounded_limit" "$@" >>"$bounded_log" 2>&1 </dev/null &
	BOUNDED=$!
	wait "$BOUNDED"
	STATUS=$?
	BOUNDED=
	# Ended by SIGKILL, ten seconds after SIGTERM had no effect.
	[ "$STATUS" != 137 ] || STATUS=124
}
BOUNDED=
# judge NAME LOG SECONDS [TEXT]: the row of a script that ended with $STATUS: 0, 77 after "skipped: WHY", or a failure.
judge() {
	case $STATUS in
	0) row "$1" ok "${4:-ok}" ;;
	77) row "$1" skipped "$(sed -n 's/^ *skipped: *//p' "$2" | tail -n 1)" ;;
	124) row "$1" failed "no end within $3 s" "$2" ;;
	*) row "$1" failed "status $STATUS$(sed -n 's/^ *FAILED: */: /p' "$2" | head -n 1 | cut -c 1-200)" "$2" ;;
	esac
}
