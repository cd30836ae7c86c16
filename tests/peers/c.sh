#!/bin/sh
# A row of peer.c in a workload with the options that the table gives: usage: c.sh BUILD NUMBER OPTIONS...
NUMBER=${2:-$SLUICE_PEER_NUMBER}
export SLUICE_PEER_NUMBER="$NUMBER" SLUICE_PEER_OPTIONS="${SLUICE_PEER_OPTIONS-$(shift 2 && echo "$*")}"
. "$(dirname "$0")/../system/lib.sh"
daemon_start
# shellcheck disable=SC2086 # options are words
$RUN $SLUICE_PEER_OPTIONS -- "$B/tests/peers/peer" "$NUMBER"
check "peer $NUMBER" $? = 0
check_books_empty
finish
