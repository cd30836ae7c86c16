#!/bin/sh
# Two halves of a card are taken; a third half is refused before anything starts, with the numbers.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
$RUN --request 0.5 --name one -- sleep 20 &
one=$!
$RUN --request 0.5 --name two -- sleep 20 &
two=$!
both() { [ "$(workloads)" = 2 ]; }
until_true 5 both
check "two halves are there" $? = 0
$RUN --request 0.5 --name three -- sleep 20 >"$T/three" 2>&1
check "the third is refused" $? = 75
check_file "with the reason" "$T/three" 'request'
kill $one $two
wait $one $two
finish
