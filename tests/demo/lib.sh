#!/bin/sh
# lib - a daemon with a page on a port of this machine that is free, for acts of make demo that are shell scripts. Source
# it inside `sluice softgpu` with $build set; everything ends with the script. $dir is a private folder.
# shellcheck disable=SC2154 # build
sluice=$build/sluice
dir=$(mktemp -d "${TMPDIR:-/tmp}/sluice-demo.XXXXXX")
export SLUICE_SOCKET="$dir/socket"
daemon=
clean_up() {
	# shellcheck disable=SC2046 # a list of pids is meant
	kill $(jobs -p) 2>/dev/null || :
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

is_up() { "$sluice" gpus >/dev/null 2>&1; }
# start_daemon LINE...: with these lines of configuration. Another daemon of this machine may have the usual port.
start_daemon() {
	for port in 7654 7655 7656 7657 7658 7659; do
		{
			echo "page: 127.0.0.1:$port"
			printf '%s\n' "$@"
		} >"$dir/config"
		"$build/sluiced" --config "$dir/config" --socket "$dir/socket" --state "$dir/state" >"$dir/log" 2>&1 &
		daemon=$!
		until is_up || ! kill -0 $daemon 2>/dev/null; do sleep 0.1; done
		if is_up; then return; fi
	done
	echo "demo: the daemon does not start:" >&2
	tail -n 5 "$dir/log" >&2
	exit 1
}
# Shows the page until it is interrupted.
show_page() {
	echo
	echo "demo: the page is at $("$sluice" page)"
	echo "demo: it stays until you press Ctrl-C"
	wait $daemon
}
