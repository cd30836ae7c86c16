#!/bin/sh
# Memory leaves in whole chunks. A burst for which others would have to leave moves no more than the host can exchange back.
# So where a chunk is larger than that, the burst is refused, and the earlier program goes on.
export LIMIT=100
export BOX="--gpus 1 --memory 512MiB --context 8MiB --module 1MiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
# Beside the slack of 64 MiB, half of 204: 102.
config 'host_memory: 268MiB'
config 'longest_wait: 2s'
config 'turn_max: 300ms'
daemon_start
said_full() { "$B/sluice" events --last 200 --json | grep -q '"reason": "POOL_FULL"'; }

note "chunks of 128 MiB, of which some 80 would have to leave"
swapper first --request 0 --limit 1.0
ok first alloc a 260m
ok first fill a 1
swapper second --request 0 --limit 1.0
refused "the second is told that it has no room" CUDA_ERROR_OUT_OF_MEMORY second alloc b 300m
check "nothing of the first is on the host" "$(evicted_bytes first)" = 0
check "an event says why" "$(until_true 5 said_full && echo yes)" = yes
contents first
ok second alloc c 100m
ok second fill c 2
contents second
end_swapper second
end_swapper first

note "chunks of 4 MiB: they take turns"
swapper first --request 0 --limit 1.0
ok first many a 65 4m
ok first fill a 3
swapper second --request 0 --limit 1.0
ok second many b 75 4m
check "no more is on the host than was allowed: $(evicted_bytes first)" "$(evicted_bytes first)" -le $((102 * MIB))
check "but some is" "$(evicted_bytes first)" -gt 0
ok second fill b 4
contents first "back in its turn"
contents second "back in its turn"
end_swapper second
end_swapper first
check_books_empty
finish
