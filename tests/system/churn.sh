#!/bin/sh
# Four processes allocate and free at random beside each other, two of them in one workload; every word
# is checked before it is freed (peer-failures rows 4, 7, 31).
export LIMIT=120
. "$(dirname "$0")/lib.sh"
daemon_start
seed=${SEED:-$(date +%s)}
note "seed $seed"
pids=
churn() { $RUN --request "$2" --limit 0.9 --name "$1" -- "$P/alloc-churn" --operations 400 --slots 24 --max 12MiB --seed "$3" >"$T/$1.$3" 2>&1 & }
churn a 150MiB "$seed"
pids="$pids $!"
churn b 0 $((seed + 1))
pids="$pids $!"
$RUN --request 100MiB --limit 0.9 --name pair -- sh -c "
	'$P/alloc-churn' --operations 300 --max 12MiB --seed $((seed + 2)) & one=\$!
	'$P/alloc-churn' --operations 300 --max 12MiB --seed $((seed + 3)) || exit 1
	wait \$one" >"$T/pair" 2>&1 &
pids="$pids $!"
for pid in $pids; do
	wait "$pid"
	check "status of $pid" $? = 0
done
cat "$T"/a.* "$T"/b.* "$T/pair" | grep '"end"' | sed 's/^/  /'
check "runs with a wrong word" "$(cat "$T"/a.* "$T"/b.* "$T/pair" | grep '"end"' | grep -vc '"wrong":0')" = 0
check_books_empty
finish
