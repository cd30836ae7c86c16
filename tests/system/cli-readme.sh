#!/bin/sh
# The README's first block, typed line by line by a user who is not root, with a daemon of its own and nothing set up.
export BOX="--gpus 1 --memory 24GiB"
export LIMIT=100
. "$(dirname "$0")/nobody.sh"
. "$(dirname "$0")/lib.sh"
software_only "a GPU of 24 GiB"
[ ! -S /run/sluice/sluiced.sock ] || skip "a daemon of this machine runs"
readme=$(realpath "$(dirname "$0")/../../README.md")

# What the user has: a home, programs called python and so on, and sluice in its PATH.
mkdir "$T/home" "$T/run" "$T/bin"
printf '#!/bin/sh\nexec %s --bytes 64MiB --ms 60000\n' "$P/holder" >"$T/bin/python"
chmod +x "$T/bin/python"
for program in sluice sluiced sluice-shim sluice-move libsluice.so sluice-softgpu by-loader; do
	[ ! -e "$B/$program" ] || ln -s "$B/$program" "$T/bin/$program"
done
unset SLUICE_SOCKET SLUICE_STATE XDG_DATA_HOME XDG_STATE_HOME
export HOME="$T/home" XDG_RUNTIME_DIR="$T/run" PATH="$T/bin:$PATH"
cd "$T/home" || exit 99

sed -n '/^```sh$/,/^```$/p' "$readme" | sed '/^```/,$!d; 1d; /^```/,$d' >"$T/block"
check "the block has lines" "$(wc -l <"$T/block")" -ge 8
check_file "it starts a daemon" "$T/block" '^sluiced &'
number=0
while read -r line; do
	number=$((number + 1))
	eval "$line" >"$T/said.$number" 2>&1
	status=$?
	check "'$(echo "$line" | sed 's/  *#.*//')'" $status = 0
	[ $status = 0 ] || cat "$T/said.$number"
	# A pause as of a person who types.
	sleep 0.8
done <"$T/block"
# said WORDS PATTERN: what the line that begins so said.
said() {
	at=$(grep -n "^$1" "$T/block" | head -n 1 | cut -d: -f1)
	check_file "$1 says so" "$T/said.${at:-0}" "$2"
}
check "not root" "$(id -u)" != 0
said 'sluiced' 'ready on '"$T"'/run/sluice/sluiced\.sock, 1 GPU'
said 'sluice run' '"event":"held"'
said 'sluice ps' 'python serve\.py'
said 'sluice ps' 'train .* 10\.*0*Gi'
said 'sluice why train' '^train runs on GPU 0'
said 'sluice page' '^http://127\.0\.0\.1:[0-9]+/#token='
said 'sluice set' '^train: request 10 GiB, limit 20 GiB'
said 'sluice park' '^train is parked: .* on the host'
said 'sluice resume' '^train is back: '
said 'sluice submit' '^fit: queued as job [0-9]+; it '
finish
