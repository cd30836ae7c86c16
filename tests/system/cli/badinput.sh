#!/bin/sh
# Bad input and faults, one row each: the status, and words of the message that name the thing
# or the remedy. No daemon and no GPU is needed.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

# --- the command line itself
expect 'no verb' 64 '' "$sluice"
expect 'unknown verb' 64 "unknown verb 'rum'; did you mean 'run'?" "$sluice" rum
expect 'unknown verb, no guess' 64 "sluice help" "$sluice" kubernetes
expect 'unknown verb, as JSON' 64 '^{"ok": false, "exit": 64, "error": "unknown verb .rum.; did you mean .run.?"}$' \
	"$sluice" rum --json
expect 'unknown verb, JSON of CMD' 64 '^sluice: unknown verb' "$sluice" rum -- true --json
expect 'no command' 64 'sluice run \[options\] -- CMD' "$sluice" run
expect 'no command after --' 64 'no command' "$sluice" run --gpus 1 --
expect 'unknown option' 64 'did you mean --request?' "$sluice" run --reqest 1GiB -- true
expect 'option of another verb' 64 'unknown option --json' "$sluice" softgpu --json -- true
expect 'a value is missing' 64 'request needs a value' "$sluice" run --request
expect 'word where none belongs' 64 "unexpected word 'all'" "$sluice" ps all
expect 'request 8' 64 'did you mean 8GiB?' "$sluice" run --request 8 -- true
expect 'request 8192' 64 'did you mean 8192MiB?' "$sluice" run --request 8192 -- true
expect 'limit 0' 64 'limit 0 is below 2 MiB.*raise it, or leave it out' "$sluice" run --limit 0 -- true
expect 'limit below a piece' 64 'limit 2097151 is below 2 MiB' "$sluice" run --limit 2097151 -- true
expect 'request below a piece' 64 'request 1MiB, which alone is also the limit,.*add --limit' \
	"$sluice" run --request 1MiB -- true
expect 'fraction too small' 64 'too small; the smallest fraction' "$sluice" run --limit 0.0000001 -- true
expect 'fraction above 1' 64 'at most 1' "$sluice" run --request 1.5 -- true
expect 'negative' 64 'negative' "$sluice" run --limit -1 -- true
expect 'junk amount' 64 'write a fraction like 0.25' "$sluice" run --limit lots -- true
expect 'junk suffix' 64 'suffixes' "$sluice" run --limit 8gigs -- true
expect 'limit below request, fractions' 64 'limit 0.2 is below --request 0.5' \
	"$sluice" run --request 0.5 --limit 0.2 -- true
expect 'limit below request, bytes' 64 'limit 1GiB is below --request 2GiB' \
	"$sluice" run --request 2GiB --limit 1GiB -- true
expect 'no GPUs' 64 'not within 1 to 64' "$sluice" run --gpus 0 -- true
expect 'junk GPUs' 64 'not a whole number' "$sluice" run --gpus all -- true
expect 'priority' 64 'not within -1000 to 1000' "$sluice" run --priority 1001 -- true
expect 'name with blanks' 64 'blanks' "$sluice" run --name 'a b' -- true
expect 'software memory' 64 'did you mean 4GiB?' "$sluice" softgpu --memory 4 -- true
expect 'software GPUs' 64 'not within' "$sluice" softgpu --gpus 1000 -- true
expect 'fault plan, no row' 64 'write cuMemCreate:3=oom' "$sluice" softgpu --faults junk -- true
expect 'fault plan, no such call' 64 'no call .cuMemCreat.; did you mean .cuMemCreate.?' \
	"$sluice" softgpu --faults cuMemFree_v2:1=oom,cuMemCreat:3=oom -- true
expect 'fault plan, no such error' 64 "'much' is no error" \
	"$sluice" softgpu --faults cuMemCreate:3=much -- true
expect 'fault plan, which call' 64 "'@0' does not say which call of cuMemCreate" \
	"$sluice" softgpu --faults cuMemCreate:@0=oom -- true
expect 'software, no command' 64 'no command' "$sluice" softgpu
expect 'help of nothing' 64 "unknown verb 'nothing'" "$sluice" help nothing
expect 'help goes to standard output' 0 'usage: sluice run' "$sluice" run --help

# --- and as JSON, wherever --json stands
expect 'JSON, asked before' 64 '^{"ok": false, "exit": 64, "error": ".*did you mean --request?' \
	"$sluice" run --json --reqest 1GiB -- true
expect 'JSON, asked after' 64 '^{"ok": false, "exit": 64, "error": ".*did you mean 8GiB?' \
	"$sluice" run --request 8 --json -- true
expect 'JSON, asked after an unknown option' 64 '^{.*did you mean --request?' \
	"$sluice" run --reqest 8GiB --json true
expect 'JSON, word where none belongs' 64 '^{.*unexpected word' "$sluice" ps all --json
expect 'JSON, unknown option of ps' 64 '^{.*did you mean --watch?' "$sluice" ps --wach 2 --json
expect 'JSON of CMD is not ours' 64 '^sluice run: unknown option' "$sluice" run --reqest=1GiB -- true --json
expect 'JSON of CMD without --' 64 '^sluice run: unknown option' "$sluice" run --reqest=1GiB true --json

# --- CMD
expect 'CMD not found' 127 'no-such-program: not found' "$sluice" run -- no-such-program
expect 'CMD is empty' 64 'no command: CMD is an empty word' "$sluice" run -- ''
mkdir -m 0 "$work/shut"
as=
[ "$(id -u)" != 0 ] || as='setpriv --reuid 65534 --regid 65534 --clear-groups'
# shellcheck disable=SC2086 # words
if $as "$sluice" version >/dev/null 2>&1; then
	expect 'CMD not found, and a folder of PATH is shut' 127 'no-such-program: not found along PATH' \
		$as env PATH="$work/shut:$PATH" "$sluice" run -- no-such-program
fi
chmod 700 "$work/shut"
expect 'CMD not found, by path' 127 'not found' "$sluice" run -- /no/such/program
expect 'CMD not executable' 126 'cannot be executed' "$sluice" run -- /etc/passwd
expect 'CMD is a folder' 126 'cannot be executed' "$sluice" run -- /tmp
mkdir "$work/bin"
for front in docker podman nerdctl apptainer sudo doas su ssh srun kubectl; do
	printf '#!/bin/sh\nexit 0\n' >"$work/bin/$front"
	chmod +x "$work/bin/$front"
	expect "in front of $front" 64 "^sluice run: $front .*sluice run \[options\] -- " \
		"$sluice" run --request 0.5 -- "$work/bin/$front" exec run
done
expect 'in front of what starts a container, behind env' 64 '^sluice run: podman .* -- podman run IMAGE CMD' \
	"$sluice" run -- env A=b "$work/bin/podman" run image
expect 'behind env and nice' 64 '^sluice run: sudo drops LD_PRELOAD' \
	"$sluice" run -- env A=b nice -n 5 "$work/bin/sudo" true
cat >"$work/hello.c" <<'C'
int main(void) { return 0; }
C
if cc -static -o "$work/static" "$work/hello.c" 2>/dev/null; then
	expect 'a static program' 64 'linked statically' "$sluice" run -- "$work/static"
	printf '#!%s\n' "$work/static" >"$work/script"
	chmod +x "$work/script"
	expect 'a script for a static program' 64 'linked statically' "$sluice" run -- "$work/script"
fi

# --- the library
cp "$sluice" "$work/bin/sluice"
expect 'library missing' 78 "found neither in $work/bin nor in .*SLUICE_LIBRARY" \
	env -u SLUICE_LIBRARY "$work/bin/sluice" run -- true
expect 'library named wrongly' 78 'SLUICE_LIBRARY=/no/lib.so' \
	env SLUICE_LIBRARY=/no/lib.so "$sluice" run -- true
libc=$(ldd "$sluice" | sed -n 's/.*=> \(.*libc\.so\.6\).*/\1/p')
expect 'library of others' 78 "$(basename "$libc").* is not Sluice's library.*without limits" \
	env SLUICE_LIBRARY="$libc" "$sluice" run --limit 100MiB -- touch "$work/ran"
: >"$work/empty.so"
expect 'library that is empty' 78 'empty.so is not a library at all' \
	env SLUICE_LIBRARY="$work/empty.so" "$sluice" run -- touch "$work/ran"
cp "$SLUICE_BUILD/libsluice.so" "$work/cut.so"
truncate -s 4000 "$work/cut.so"
expect 'library that is cut short' 78 'cut.so is damaged' \
	env SLUICE_LIBRARY="$work/cut.so" "$sluice" run -- touch "$work/ran"
expect 'library that is a folder' 78 'SLUICE_LIBRARY=/tmp is not a readable file\|cannot be read' \
	env SLUICE_LIBRARY=/tmp "$sluice" run -- touch "$work/ran"
[ ! -e "$work/ran" ] || fail 'CMD ran with a library that is not ours'
mkdir "$work/with blank"
cp "$SLUICE_BUILD/libsluice.so" "$work/with blank/libsluice.so"
expect 'library with a blank' 78 'LD_PRELOAD cannot carry' \
	env SLUICE_LIBRARY="$work/with blank/libsluice.so" "$sluice" run -- true

# --- the daemon
for verb in 'run -- true' ps gpus; do
	# shellcheck disable=SC2086 # words are meant
	expect "no daemon: $verb" 69 "no daemon answers at $work/none.sock.*sluiced &.*systemctl start" \
		"$sluice" $verb
done
expect 'no daemon, as JSON' 69 '^{.*"exit": 69.*"error": "no daemon answers' "$sluice" ps --json
long=$work/$(printf '%0120d' 0)
expect 'socket path too long' 64 '107' env SLUICE_SOCKET="$long" "$sluice" ps
touch "$work/file"
expect 'socket is a folder' 64 "$work is a folder, not a socket" env SLUICE_SOCKET="$work" "$sluice" ps
expect 'socket is a file' 64 "$work/file is a file, not a socket; set SLUICE_SOCKET" env SLUICE_SOCKET="$work/file" "$sluice" ps
expect 'socket below a file' 69 'not a folder' env SLUICE_SOCKET="$work/file/s" "$sluice" ps
expect 'doctor with hardly any descriptors' 1 '' sh -c "ulimit -n 4; exec '$sluice' doctor"
printf '%s\n' "$out" | grep -q 'Too many open files' || fail "doctor with 4 descriptors: $out"
visible=$(printf '%0300d' 0)
expect 'too many visible devices' 64 'CUDA_VISIBLE_DEVICES has 300 bytes' \
	env CUDA_VISIBLE_DEVICES="$visible" "$sluice" run -- true
expect 'a full disk' 71 'cannot write the output' sh -c "'$sluice' help >/dev/full"
if [ -z "$is_sanitized" ]; then
	"$sluice" doctor >"$work/doctor"
	grep -q '^ok    library .* needs glibc 2\.\([0-9]\|1[0-7]\),' "$work/doctor" ||
		fail "doctor: what the library needs: $(grep library "$work/doctor")"
fi
expect 'doctor without anything' 1 '' "$sluice" doctor
printf '%s\n' "$out" | grep -q '^FAIL  daemon .*no daemon answers' || fail "doctor: $out"

protocol=$("$sluice" version --json | sed -n 's/.*"protocol": \([0-9]*\).*/\1/p')
fake version
expect 'another protocol version' 76 \
	"speaks protocol version $((protocol + 1)), this sluice (.*) version $protocol" \
	"$sluice" ps
expect 'another protocol version, run' 76 'restart the daemon' "$sluice" run -- true
fake newer
expect 'a newer daemon that welcomes' 76 "speaks protocol version $((protocol + 6))" "$sluice" ps
fake full
expect 'the daemon has no descriptors left' 69 'no descriptors left. Try again' "$sluice" run -- true
fake denied
expect 'the daemon denies' 77 'you are not on the list' "$sluice" ps
fake garbage
expect 'not a daemon at all' 76 'is not sluiced' "$sluice" gpus
fake silent
expect 'a daemon that hangs' 69 'did not answer within 200 ms' \
	env SLUICE_TIMEOUT=200ms "$sluice" ps
fake close
expect 'a daemon that hangs up' 69 'ended the connection' "$sluice" ps
fake half
expect 'a daemon that dies in its answer' 69 'ended the connection' "$sluice" ps
same 'half a list is not printed' "$out" ''
expect 'a daemon that dies in admission' 69 'ended the connection' "$sluice" run -- true
fake wrong-answer
expect 'a daemon that answers something else' 76 'answered WELCOME instead of RUN_REPLY' \
	"$sluice" run -- true
if [ "$(id -u)" = 0 ]; then
	fake stranger
	# Root believes root only; for root, the stranger is user 65534.
	expect 'a socket that is not ours' 77 'runs as user 65534, neither root nor you' \
		"$sluice" ps
	expect 'nothing is run for a stranger' 77 'not trusted' "$sluice" run -- touch "$work/ran"
	[ ! -e "$work/ran" ] || fail 'CMD ran on the word of a stranger'
fi
fake refuse
expect 'refused, with the numbers' 75 '8 GiB does not fit: 14 GiB shareable, 10 GiB requested' \
	"$sluice" run --request 8GiB -- touch "$work/ran"
[ ! -e "$work/ran" ] || fail 'CMD ran although it was refused'
has_hint='^(--wait waits until it fits; sluice submit queues it in the background)$'
expect 'refused for room: it may be queued' 75 "$has_hint" "$sluice" run --request 8GiB -- true
same 'no hint where the request was given' "$(printf '%s\n' "$err" | grep -c 'also the request')" 0
expect 'refused, and only a limit given' 75 '^(--limit alone is also the request; add --request 0, or lower it; --wait waits until it fits, and sluice submit queues it)$' \
	"$sluice" run --limit 8GiB -- true
expect 'refused, and only a limit given, as JSON' 75 '"hint": "--limit alone is also the request' \
	"$sluice" run --json --limit 8GiB -- true
expect 'refused, as JSON' 75 '"ok": false, "exit": 75, "reason": "REQUESTS_TAKEN"' \
	"$sluice" run --json -- true
finish
