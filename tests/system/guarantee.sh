#!/bin/sh
# A request is there when its owner comes, whatever a hog took before: the hog may burst into
# unrequested memory and no further, and waits or gets out-of-memory beyond it.
. "$(dirname "$0")/lib.sh"
config 'longest_wait: 2s'
config 'resolvers: wait'
daemon_start
# The owner is there, holds nothing yet, and asks once the hog has had its fill.
$RUN --request 400MiB --limit 400MiB --name owner -- sh -c "
	while [ ! -e '$T/go' ]; do sleep 0.05; done; exec '$P/holder' --bytes 340MiB --verify --ms 1500" >"$T/owner" &
owner=$!
bound() { [ "$(use owner request_bytes)" = $((400 << 20)) ]; }
until_true 5 bound
$RUN --name hog -- "$P/memhog" --piece 16MiB --hold-ms 100000 --leak >"$T/hog" &
hog=$!
wait_event "$T/hog" took 30
took=$(json -l event=took bytes <"$T/hog")
check "the hog was told" "$(json -l event=took result <"$T/hog")" = CUDA_ERROR_OUT_OF_MEMORY
check "the hog had what was left, MiB" $((took >> 20)) -ge 300
check "and no byte of the request" $((took + (400 << 20))) -le "$(gpu shareable_bytes)"
touch "$T/go"
wait_event "$T/owner" held
check "the owner got its request beside the hog" "$(gone $hog || echo beside)" = beside
wait $owner
check "the owner's status" $? = 0
check "nothing was wrong in it" "$(json -l event=end wrong <"$T/owner")" = 0
# A second request that does not fit beside the first is refused, with numbers.
$RUN --request 700MiB --name first -- sleep 60 &
first=$!
first() { [ "$(use first request_bytes)" = $((700 << 20)) ]; }
until_true 8 first
$RUN --request 700MiB -- true 2>"$T/refused"
check "a request too many" $? = 75
check_file "says why with numbers" "$T/refused" '[0-9].*MiB|GiB'
kill $first $hog
wait $hog $first
check_books_empty
finish
