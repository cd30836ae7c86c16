#!/bin/sh
# Late binding: the GPU of a program whose user named none is chosen at its first CUDA call.
export BOX='--gpus 2 --memory 2GiB'
export LIMIT=260
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/swap-lib.sh"
software_only "GPUs that are filled and lost at will"
config 'host_memory: 4GiB'
config 'measure_interval: 100ms'
daemon_start
"$P/nvml-view" >"$T/nvml"
uuid() { grep "\"what\":\"device\",\"index\":$1," "$T/nvml" | json uuid; }

# Waits for the file that it is given, and becomes the program.
cat >"$T/patient" <<'END'
#!/bin/sh
until [ -e "$1" ]; do sleep 0.05; done
shift
exec "$@"
END
chmod +x "$T/patient"
# waiter NAME OPTIONS...: a swapper that has made no CUDA call yet; $was: its GPU. begins NAME: now it makes them.
waiter() {
	rm -f "$T/go-$1"
	SWAPPER_PROGRAM="$T/patient $T/go-$1 ${WAITER:-$P/swapper}" launch_swapper "$@"
	until_true 20 has_gpu "$1" || fail "$1 does not start: $(cat "$T/$1.err")"
	was=$(use "$1" gpu) other=$((1 - $(use "$1" gpu)))
}
has_gpu() { [ -n "$(use "$1" gpu)" ]; }
begins() {
	: >"$T/go-$1"
	until_true 20 grep -q start "$T/$1" || fail "$1 does not begin: $(cat "$T/$1.err")"
}
# fills GPU SIZE: by a neighbour without a request.
fills() {
	CUDA_VISIBLE_DEVICES=$1 swapper full --request 0 --limit 1
	ok full alloc m "$2"
	ok full fill m 4
	check "a neighbour fills GPU $1" "$(where full)" = "$1"
}
# works NAME GPU: there by the driver and by the books, and its memory is right.
works() {
	ok "$1" alloc m 200m
	ok "$1" fill m 5
	contents "$1"
	check "$1 is on GPU $2, says the driver" "$(where "$1")" = "$2"
	check "and ps" "$(use "$1" gpu)" = "$2"
}
requests_on() { "$B/sluice" gpus --json | json "$1.requests_bytes"; }
state_of() { "$B/sluice" ps --all --json | json "name=$1.state"; }
is_in() { [ "$(state_of "$1")" = "$2" ]; }
# has_why NAME TEXT; has_event TEXT
has_why() { "$B/sluice" why "$1" 2>&1 | grep -q "$2" && echo yes; }
has_event() { "$B/sluice" events --last 200 | grep -q "$1" && echo yes; }

note "--- bursts of others fill the GPU that was promised"
waiter one --request 256MiB --limit 1
check "why says that it may change" "$(has_why one "GPU $was is promised, and the first call may get another one")" = yes
fills "$was" 1500m
check "it is promised there" "$(requests_on "$was")" = $((256 * MIB))
begins one
works one "$other"
check "its request went along" "$(requests_on "$other")/$(requests_on "$was")" = "$((256 * MIB))/0"
check "an event tells" "$(has_event "one begins on GPU $other")" = yes
check "it is settled" "$(has_why one "first call")" = ""

note "--- a program sees one GPU, whichever it got, and so do its children"
WAITER="$P/wanderer --bytes 32MiB" waiter views --request 100MiB --limit 0.7
[ "$was" = "$(use full gpu)" ] || {
	end_swapper full
	fills "$was" 1500m
}
begins views
echo child >"$T/views.in"
until_true 30 grep -q looked "$T/views" || fail "it does not look: $(cat "$T/views.err")"
check "it is on the other GPU, says the driver" "$(where views)" = "$other"
check "as its driver tells it" "$(json -l event=look uuid <"$T/views")" = "$(uuid "$other")"
check "its child is there, too" "$(json -l event=child uuid <"$T/views")" = "$(uuid "$other")"
check "NVML has no other" "$(grep -c "\"event\":\"nvml\".*$(uuid "$other")" "$T/views")" = 6
check "all is right" "$(grep -c '"right":true' "$T/views")" = 2
kill_swapper views
end_swapper one

note "--- what its first process was told stays true when that has ended"
cat >"$T/looker" <<END
#!/bin/sh
"$P/nvml-view" >"$T/look" && mv "$T/look" "$T/looked"
until [ -e "$T/go-on" ]; do sleep 0.05; done
exec "$P/swapper"
END
chmod +x "$T/looker"
WAITER="$T/looker" waiter looks --request 256MiB --limit 1
[ "$was" = "$(use full gpu)" ] || {
	end_swapper full
	fills "$was" 1500m
}
: >"$T/go-looks"
until_true 20 test -e "$T/looked" || fail "looks does not look"
check "a look sees the other GPU" "$(grep -c "\"what\":\"device\".*$(uuid "$other")" "$T/looked")" = 1
end_swapper full
fills "$other" 1500m
: >"$T/go-on"
begins looks
works looks "$other"
end_swapper looks

note "--- it stays where all that it may use is free, and where its user wants it"
waiter small --request 64MiB --limit 300MiB
[ "$was" = "$(use full gpu)" ] || {
	end_swapper full
	fills "$was" 1000m
}
ok full free m
ok full alloc m 1000m
begins small
works small "$was"
end_swapper small
export CUDA_VISIBLE_DEVICES="$was"
waiter named --request 256MiB --limit 1
unset CUDA_VISIBLE_DEVICES
check "why knows it" "$(has_why named "first call")" = ""
begins named
works named "$(use full gpu)"
end_swapper named
end_swapper full
check_books_empty

note "--- a place that the queue keeps is kept"
waiter late --request 0.3 --limit 1
CUDA_VISIBLE_DEVICES=$other "$B/sluice" submit --name stays --request 0.5 -- sh -c "trap '' TERM; until [ -e '$T/end' ]; do sleep 0.1; done" >"$T/submit" 2>&1
until_true 20 is_in stays running || fail "stays: $(cat "$T/submit")"
"$B/sluice" submit --name large --request 0.8 -- "$P/holder" --bytes 1200MiB --verify --ms 500 >"$T/submit" 2>&1
"$B/sluice" stop stays --grace 1m >"$T/stop" 2>&1 &
fills "$was" 1500m
until_true 20 is_in stays stopping || fail "stays is $(state_of stays)"
sleep 0.5
begins late
works late "$was"
: >"$T/end"
until_true 60 is_in large "done" || fail "large: $(state_of large): $("$B/sluice" why large)"
check "there was its place" "$(where late)" = "$was"
end_swapper late
end_swapper full
check_books_empty

note "--- sluiced ends before the first call, and after it"
waiter late --request 0.3 --limit 1
daemon_kill
fills_later=$was
daemon_start
until_true 20 has_gpu late || fail "it is forgotten"
check "it is promised on the same GPU" "$(use late gpu)" = "$was"
fills "$fills_later" 1500m
: >"$T/go-late"
changed() { [ "$(use late gpu)" = "$other" ]; }
until_true 20 changed || fail "it stays on $(use late gpu): $(cat "$T/late.err")"
daemon_kill
daemon_start
until_true 20 grep -q start "$T/late" || fail "it does not begin: $(cat "$T/late.err")"
works late "$other"
check "its request is on one GPU" "$(requests_on "$was")" = 0
end_swapper late

note "--- it is killed at its first call"
waiter late --request 0.3 --limit 1
: >"$T/go-late"
kill_swapper late
end_swapper full
check_books_empty

note "--- the GPU is lost before the first call"
waiter late --request 0.3 --limit 1
"$B/sluice" submit --name job --request 0.3 -- "$T/patient" "$T/go-job" "$P/holder" --bytes 100MiB --verify --until "$T/end-job" >"$T/submit" 2>&1
until_true 20 is_in job running || fail "job: $(cat "$T/submit")"
lost=$(use job gpu)
"$B/sluice" softgpu --lose "$was"
is_lost() { [ "$("$B/sluice" gpus --json | json "$1.lost")" = 1 ]; }
until_true 30 is_lost "$was" || fail "GPU $was is not lost"
begins late
works late "$other"
[ "$lost" = "$was" ] || fail "the job was on GPU $lost"
: >"$T/go-job"
holds() { "$P/nvml-view" | grep -c "\"what\":\"process\",\"index\":$other,"; }
both_hold() { [ "$(holds)" = 2 ]; }
check "the job begins there, too" "$(until_true 30 both_hold && echo yes)" = yes
: >"$T/end-job"
until_true 30 is_in job "done" || fail "job: $(state_of job)"
check "it was started once" "$("$B/sluice" events --last 200 | grep -c " job started")" = 1
end_swapper late
finish
