#!/bin/sh
# Forty processes end in one moment, some while they wait: the daemon lives, and its books are empty.
. "$(dirname "$0")/../system/lib.sh"
daemon_start
cat >"$T/many" <<INNER
for i in 1 2 3 4 5 6 7 8 9 10; do "$P/holder" --bytes 4MiB --ms 30000 >"$T/\$1.\$i" & done
wait
INNER
groups=
for group in 1 2 3 4; do
	$RUN --request 0 --limit 900MiB --name "group$group" -- sh "$T/many" $group &
	groups="$groups $!"
done
most_hold() { [ "$(cat "$T"/[1-4].* 2>/dev/null | grep -c held)" -ge 20 ]; }
until_true 20 most_hold
check "most of them hold memory" $? = 0
holders=
for group in $groups; do holders="$holders $(cat "/proc/$group/task/$group/children")"; done
# shellcheck disable=SC2086 # pids
kill -KILL $holders
# shellcheck disable=SC2086 # and more
wait $groups 2>/dev/null
check_books_empty 15
check "the daemon lives" "$(kill -0 "$DAEMON" && echo yes)" = yes
finish
