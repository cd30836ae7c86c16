#!/bin/sh
# Each command of tests/launchers/list is run as it stands there, and ends as it says there: CMD asks the driver for a
# mebibyte more than the limit, and gets out-of-memory (limited) or the memory (free), or sluice run refuses. Rows whose
# program is not installed are left out, and named. The table of docs/launchers.md is made from the same list.
export BOX="--gpus 1 --memory 1GiB --shared" LIMIT=170
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
software_only "a box for all users"
here=$(cd "$(dirname "$0")" && pwd)
bin=$T/bin
mkdir "$bin"
chmod 711 "$T"
config 'socket_mode: 0666'
daemon_start
# CMD, and what it is to be told wherever its environment is lost.
settings="PATH=$bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin SLUICE_SOCKET=$SLUICE_SOCKET SLUICE_SOFTGPU=$SLUICE_SOFTGPU"
settings="$settings LD_LIBRARY_PATH=$LD_LIBRARY_PATH LAUNCHERS_OUT=$T/leaf/out"
mkdir -m 1777 "$T/leaf"
export LAUNCHERS_OUT="$T/leaf/out" PATH="$bin:$PATH"
program() { # program NAME LINE...
	printf '#!/bin/sh\n' >"$bin/$1"
	program_name=$1
	shift
	printf '%s\n' "$@" >>"$bin/$program_name"
	chmod 755 "$bin/$program_name"
}
# at, sudo and su drop LD_LIBRARY_PATH; a real driver does not need it.
program leaf "export LD_LIBRARY_PATH='$LD_LIBRARY_PATH'" "exec '$P/tenant' --bytes 301MiB --ms 1 >>'$T/leaf/out' 2>&1"
program sluice "[ \"\$1\" = run ] || exec '$B/sluice' \"\$@\"" "shift" \
	"exec '$B/sluice' run --request 0 --limit 300MiB \"\$@\""
# As where Sluice is installed for all: found, and at the usual socket.
program sudo "user=\$2; shift 2" "exec /usr/bin/sudo -n -u \"\$user\" env $settings \"\$@\""
program runuser "shift; user=\$1; shift 2" "exec /usr/sbin/runuser -u \"\$user\" -- env $settings \"\$@\""
program ssh "shift" "exec /usr/bin/ssh -F '$T/ssh/config' localhost env $settings \"\$@\""
for absent in srun systemd-run apptainer podman; do
	[ -x "/usr/bin/$absent" ] || program "$absent" 'exit 0'
done
printf 'all: a b\na b:\n\t%s/leaf\n' "$bin" >"$T/Makefile"
mkdir -m 700 "$T/screens"
export SCREENDIR="$T/screens"

# What must run before: servers of ssh, at and cron, and a tmux that knows nothing of Sluice. Each ends with the test.
servers=
serve() { # serve NAME COMMAND...
	serve_name=$1
	shift
	"$@" >"$T/$serve_name.log" 2>&1 &
	servers="$servers $!"
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
set_up_ssh() {
	[ -x /usr/sbin/sshd ] && [ "$(id -u)" = 0 ] || return
	port=$(free_port)
	mkdir -m 700 "$T/ssh"
	ssh-keygen -q -t ed25519 -N '' -f "$T/ssh/host"
	ssh-keygen -q -t ed25519 -N '' -f "$T/ssh/key"
	cp "$T/ssh/key.pub" "$T/ssh/keys"
	cat >"$T/ssh/sshd_config" <<-C
		Port $port
		ListenAddress 127.0.0.1
		HostKey $T/ssh/host
		AuthorizedKeysFile $T/ssh/keys
		StrictModes no
		PermitRootLogin yes
		UsePAM no
		PidFile none
	C
	cat >"$T/ssh/config" <<-C
		Host localhost
		HostName 127.0.0.1
		Port $port
		User root
		IdentityFile $T/ssh/key
		StrictHostKeyChecking no
		UserKnownHostsFile /dev/null
		LogLevel ERROR
	C
	mkdir -p /run/sshd
	serve sshd /usr/sbin/sshd -D -e -f "$T/ssh/sshd_config"
}
crontab_file=/etc/cron.d/sluice-test-$$
end_launchers() {
	rm -f "$crontab_file"
	tmux -L old kill-server 2>/dev/null
	tmux -L new kill-server 2>/dev/null
	# shellcheck disable=SC2086 # pids
	[ -z "$servers" ] || kill $servers 2>/dev/null
	clean_up
}
trap end_launchers EXIT
set_up_ssh
# shellcheck disable=SC2086 # settings
[ "$(id -u)" != 0 ] || [ ! -x /usr/sbin/atd ] || serve atd env -i PATH="$PATH" /usr/sbin/atd -f
# shellcheck disable=SC2086 # settings
command -v tmux >/dev/null && env -i $settings TERM=dumb tmux -L old new -d 'sleep 300'

# What a row needs beside a shell; empty: it is there.
missing() {
	case $1 in
	podman* | srun* | systemd-run* | apptainer*) return ;;
	mpirun*) set -- mpirun ;;
	torchrun* | multiprocessing* | "an API"*) set -- python3 ;;
	screen* | tmux* | ssh* | sudo* | at* | cron* | make*) set -- "${1%%[ ,]*}" ;;
	*) return ;;
	esac
	case $1 in
	ssh | sudo | at | cron) [ "$(id -u)" = 0 ] || echo "root" ;;
	esac
	case $1 in
	ssh) set -- sshd ;;
	at) set -- atd ;;
	esac
	[ -x "/usr/bin/$1" ] || [ -x "/usr/sbin/$1" ] || echo "$1"
}
answers() { json -n event="$1" <"$T/leaf/out" 2>/dev/null || echo 0; }
answered() { [ $(($(answers oom) + $(answers held))) -ge "$1" ]; }
outcome() { # outcome STATUS COUNT
	[ "$1" != 64 ] || {
		echo refused
		return
	}
	until_true 20 answered "$2" || {
		echo "silent: status $1, $(tail -n 1 "$T/said")"
		return
	}
	[ "$(answers held)" = 0 ] && echo limited || echo free
}
# try NAME COMMAND: its outcome.
try() {
	rm -f "$T/leaf/out"
	try_count=1
	case $2 in *'x 2'*) try_count=2 ;; esac
	try_text=$(echo "$2" | sed -e 's/ x 2//' -e "s|CMD|$bin/leaf|g" -e 's/USER/nobody/g' -e "s|SLUICE|$bin/sluice|" -e "s|TREE|$here/tree.py|" \
		-e "s|MAKEFILE|$T/Makefile|" -e "s|SETTINGS|$settings|")
	timeout 30 sh -c "$try_text" >"$T/said" 2>&1 </dev/null
	outcome $? $try_count
}
rows() { grep -v '^#' "$here/list" | sed 's/\\|/\x01/g'; }

# cron looks once a minute, so its line runs beside the others, with an answer of its own.
if [ -z "$(missing cron)" ]; then
	{
		for setting in $settings; do
			echo "$setting"
		done | sed "s|^LAUNCHERS_OUT=.*|LAUNCHERS_OUT=$T/leaf/cron|"
		rows | sed -n 's/^cron|\([^|]*\)|.*/\1/p' | sed -e 's/sluice run/root sluice run/' -e "s|CMD|$bin/cron-leaf|"
	} >"$crontab_file"
	program cron-leaf "export LD_LIBRARY_PATH='$LD_LIBRARY_PATH'" "exec '$P/tenant' --bytes 301MiB --ms 1 >>'$T/leaf/cron' 2>&1"
	serve cron /usr/sbin/cron -f
fi
rows >"$T/rows"
while IFS='|' read -r name command expected _; do
	command=$(echo "$command" | tr '\001' '|')
	lacks=$(missing "$name")
	if [ -n "$lacks" ]; then
		note "left out: $name ($lacks is not here)"
		continue
	fi
	[ "$name" != cron ] || continue
	check "$name: $command" "$(try "$name" "$command" <&-)" = "$expected"
done <"$T/rows"
if [ -z "$(missing cron)" ]; then
	until_true 75 test -s "$T/leaf/cron"
	until_true 20 json -l event=end wrong <"$T/leaf/cron" >/dev/null
	check "cron: its line" "$(json -n event=oom <"$T/leaf/cron")" -gt 0
fi
check_books_empty 20
finish
