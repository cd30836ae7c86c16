#!/bin/sh
# The tarball on a bare system of another Debian than the one it was made on: an ordinary user unpacks it and starts a daemon, and
# two programs that do not fit on one software GPU together both end with the right result.
# usage: sh tests/packaging/tarball.sh BUILD_DIR
# shellcheck source=tests/packaging/root.sh
. "$(dirname "$0")/root.sh"

must "the tarball of this build" "$TOP/tools/tarball" "$B" "$T"
suite=trixie
! grep -qs "VERSION_CODENAME=$suite" /etc/os-release || suite=forky
# shellcheck disable=SC2119 # nothing beside the smallest system
bare_root $suite
strip -o "$ROOT/srv/stepper" "$B/tests/programs/stepper"
cp "$T"/sluice-*.tar.gz "$ROOT/srv/sluice.tar.gz"
if ! mount -t proc proc "$ROOT/proc" || ! mount --rbind /dev "$ROOT/dev"; then
	skip "this machine allows no mounts"
fi
mkdir -p "$ROOT/srv/user"
chown 1000:1000 "$ROOT/srv/user"
as_user() { # as_user COMMANDS: a shell of an ordinary user
	timeout 120 chroot --userspec=1000:1000 --groups= "$ROOT" env -i HOME=/srv/user PATH=/srv/user/.local/bin:/usr/bin:/bin \
		LC_ALL=C.UTF-8 sh -c "cd; $1"
}
# The commands of docs/guide/install.md.
must "unpacked" as_user 'mkdir -p ~/.local && tar -xzf /srv/sluice.tar.gz -C ~/.local --strip-components=1'
check "its version" "$(as_user 'sluiced --version')" "$("$B/sluiced" --version)"
missing=$(as_user 'for file in .local/bin/* .local/libexec/sluice/* .local/lib/sluice/libsluice.so .local/lib/sluice/softgpu/*; do ldd $file; done' |
	grep 'not found')
check "no library is missing" "$missing" ""
outside=$(as_user 'for file in .local/bin/*; do ldd $file; done' | sed -n 's/.* => \([^ ]*\) .*/\1/p' |
	grep -v -E '^/srv/user/|/(libc|libm)\.so\.6$')
check "none but the C library is the system's" "$outside" ""

# 640 MiB, of which each program fills 400 MiB, again and again.
must "two programs on one software GPU" as_user 'sluice softgpu --memory 640MiB -- sh -c "
	sluiced >sluiced.log 2>&1 &
	until sluice gpus >/dev/null 2>&1; do sleep 0.1; done
	for name in a b; do
		sluice run --name \$name --request 0 --limit 1.0 -- /srv/stepper --bytes 400MiB --ms 10 --steps 20 >\$name.out 2>\$name.err &
		eval \$name=\$!
	done
	wait \$a && wait \$b
	sluice events --json >events"'
for name in a b; do
	check "$name has the right result" "$(sed -n 's/.*"right":\([a-z]*\).*/\1/p' "$ROOT/srv/user/$name.out" 2>/dev/null)" true
done
check "each had to go to the host for the other" "$(grep -q -i evict "$ROOT/srv/user/events" && echo yes)" yes
[ "$FAILED" = 0 ]
