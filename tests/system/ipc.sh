#!/bin/sh
# Memory of one process used by others (cuIpc), with real processes: contents both ways, opened again and
# again, small blocks of one slab, many at once, makers that free or die, users that die, a daemon that
# dies, forks, two workloads, two GPUs, and what frameworks do (open a base once, use offsets in it).
# peer-failures rows 29 (what is shared is held) and 35 (clients survive the daemon).
export LIMIT=170
export BOX="--gpus 2 --memory 2GiB"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
# Processes that can be told what to do.
# shellcheck disable=SC2034 # swapper reads it
SWAPPER_PROGRAM=$P/ipc-peer
peer() { swapper "$@"; }
end() { kill_swapper "$@"; }
# Descriptors of memory that the daemon has: of pipes, on the software GPU.
daemon_fds() { find "/proc/$DAEMON/fd" -mindepth 1 | wc -l; }
fds_are() { [ "$(daemon_fds)" -le "$1" ]; }

# Its descriptors come and go by themselves.
config 'history: no'
daemon_start
peer maker --request 600MiB
peer user --request 100MiB
idle_fds=$(daemon_fds)

# Contents go both ways, and by kernels.
ok maker alloc big $((150 * MIB))
ok maker fill big 1
ok maker get big "$T/big"
ok user open big "$T/big"
ok user size big $((150 * MIB))
is "words that the user finds wrong" 0 user check big 1
ok user fill big 2
is "words that the maker finds wrong" 0 maker check big 2
check "what is shared is held, MiB" $(($(use maker held_bytes) >> 20)) -ge 150
tell user range big
check "the range of opened memory" "$VALUE" = $((150 * MIB))
first=$(tail -n 1 "$T/user" | json base)
check "it begins where it was opened" "$first" = 1

tell user attribute big 10
check "opened memory has no handle of its own to give" "$VALUE" = 0
refused "a handle of what is opened" CUDA_ERROR_INVALID_VALUE user get big "$T/none"

# Opened again: the same place, counted.
ok user open again "$T/big"
again=$VALUE
ok user open third "$T/big"
check "opened again it is at the same place" "$VALUE" = "$again"
ok user close again
ok user close third
is "words wrong after two closes of three" 0 user check big 2
ok user close big
refused "closed once too often" CUDA_ERROR_INVALID_VALUE user close big
is "failed of a hundred openings" 0 user cycle "$T/big" 100
refused "opened in the maker itself" CUDA_ERROR_INVALID_CONTEXT maker open mine "$T/big"

# Small blocks share a slab, and one offer.
ok maker alloc small1 4096
ok maker alloc small2 4096
ok maker write small1 11
ok maker write small2 22
ok maker get small1 "$T/small1"
before=$(daemon_fds)
ok maker get small2 "$T/small2"
check "a second block of a slab costs no descriptor" "$(daemon_fds)" -le "$before"
ok user open s1 "$T/small1"
ok user open s2 "$T/small2"
is "the first small block" 11 user read s1
is "the second small block" 22 user read s2
ok user write s2 23
is "what the user wrote into it" 23 maker read small2
ok user close s1
is "the second after the first is closed" 23 user read s2

# As frameworks do: the base is opened once, and tensors are offsets in it.
ok maker alloc segment $((20 * MIB))
ok maker part tensor segment $((5 * MIB)) $((2 * MIB))
ok maker fill tensor 5
ok maker get segment "$T/segment"
ok user open segment "$T/segment"
ok user part tensor segment $((5 * MIB)) $((2 * MIB))
is "words wrong in a tensor of an opened segment" 0 user check tensor 5
ok user fill tensor 6
is "words wrong in the maker's tensor" 0 maker check tensor 6
# A handle of the middle is one of the whole.
ok maker get tensor "$T/tensor"
ok user open whole "$T/tensor"
base=$VALUE
ok user open segment "$T/segment"
check "a handle of the middle opens the whole" "$VALUE" = "$base"

# Many at once.
mkdir "$T/many"
ok maker many m 60 $((3 * MIB)) "$T/many"
is "words wrong of 60 opened blocks" 0 user openmany m 60 "$T/many"

# Another workload, and several users at a time.
peer other --request 50MiB
ok other open big "$T/big"
ok other size big $((150 * MIB))
is "words wrong in another workload" 0 other check big 2

# The maker frees memory that others have open: they keep it; a later one is refused.
ok maker free big
is "words wrong after the maker freed it" 0 other check big 2
refused "opened after it was freed" CUDA_ERROR_INVALID_VALUE user open late "$T/big"
ok other close big

# Sharing that is refused without the GPU, and between GPUs.
peer two --gpus 2 --request 100MiB
ok two device 1
ok two alloc far $((40 * MIB))
ok two fill far 9
ok two get far "$T/far"
peer three --gpus 2 --request 100MiB
ok three open far "$T/far"
ok three size far $((40 * MIB))
is "words wrong in the other GPU's memory" 0 three check far 9
ok three device 1
ok three open own "$T/far"
ok three size own $((40 * MIB))
is "words wrong on the GPU itself" 0 three check own 9

# The daemon dies; what is open stays, and everything can be opened again at the next one.
daemon_kill
is "the maker's memory without a daemon" 23 maker read small2
is "an opened block without a daemon" 23 user read s2
daemon_start
is "failed of ten openings at the next daemon" 0 other cycle "$T/segment" 10
ok other open s2 "$T/small2"
is "a small block at the next daemon" 23 other read s2
# An opening that is under way when there is no daemon waits for it.
daemon_kill
lines=$(answers other)
echo "cycle $T/segment 1" >"$T/other.in"
sleep 0.3
check "answers without a daemon" "$(answers other)" = "$lines"
daemon_start
until_true 20 answered other "$lines"
check "an opening that waited for the daemon" "$(tail -n 1 "$T/other" | json result)" = CUDA_SUCCESS

# A user dies: the maker never notices.
end user
is "the maker's memory after a user's death" 23 maker read small2
is "failed of ten more openings" 0 other cycle "$T/segment" 10

# A forked child of the maker keeps copies of its descriptors; the time of death is the maker's.
ok maker fork
child=$VALUE
ok other open segment "$T/segment"
ok other part tensor segment $((5 * MIB)) $((2 * MIB))
end maker
is "words wrong after the maker's death" 0 other check tensor 6
refused "opened after the maker's death" CUDA_ERROR_INVALID_VALUE other open late "$T/many/m7"
kill -KILL "$child"
end other
end two
end three
until_true 10 fds_are "$idle_fds"
check "descriptors that the daemon has at the end" "$(daemon_fds)" -le "$idle_fds"
check_books_empty
finish
