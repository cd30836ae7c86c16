#!/bin/sh
# Peers that speak badly lose their connection and nothing else; one of another version is told so.
. "$(dirname "$0")/lib.sh"
daemon_start
peer() { "$B/tests/system/bad-peer" "$T/s" "$1" 2>&1; }
$RUN --name witness -- "$P/holder" --bytes 64MiB --count 2 --gap-ms 4000 --ms 500 --verify >"$T/witness" &
witness=$!
wait_event "$T/witness" ask
case $(peer version) in
"reject "*version*) check "another version is told" yes = yes ;;
*) fail "another version: $(peer version)" ;;
esac
for case in short half long unknown no-hello daemons-own junk crowd; do
	answer=$(peer $case)
	case $answer in
	closed | "reject "* | *"closed") check "$case: $answer" yes = yes ;;
	*) [ $case = crowd ] || fail "$case: answered $answer" ;;
	esac
	check "$case: a good peer is served" "$(peer good)" = welcome
done
wait $witness
check "the witness noticed nothing" $? = 0
check_books_empty
finish
