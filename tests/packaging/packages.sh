#!/bin/sh
# The packages, on a bare Debian with a systemd of its own: installed in a chroot nothing starts; at the boot the daemon does. An
# upgrade restarts it under a workload whose memory is in the host, one that runs, and a job: all three go on. Removed, purged and
# installed again. Lintian and rpmbuild have nothing to say.
# usage: sh tests/packaging/packages.sh BUILD_DIR
# shellcheck source=tests/packaging/root.sh
# shellcheck disable=SC2034 # root.sh reads END
. "$(dirname "$0")/root.sh"
"$TOP/tools/packages" dpkg-dev debhelper lintian rpm systemd-container || skip "debhelper, lintian, rpm and systemd-container cannot be installed"
command -v apt-get >/dev/null 2>&1 || skip "this is no Debian"

# Debug symbols are asked of no machine here.
export DEB_BUILD_OPTIONS=noautodbgsym
echo "--- made"
must "packages of this build" "$TOP/tools/package" "$B" 1 "$T/one"
must "and an upgrade" "$TOP/tools/package" "$B" 2 "$T/two"
version=$("$B/sluiced" --version)
version=${version#sluiced }
check "the package has the version that sluiced says" "$(dpkg-deb -f "$T"/one/sluice_*.deb Version)" "$version-1"
check "lintian says" "$(lintian --no-cfg --allow-root "$T"/one/*.changes 2>&1 | grep -v '^N:')" ""
must "RPM packages" "$TOP/tools/package" --rpm "$B" 1 "$T/rpm"
check "sluice as RPM" "$(rpm -qp --qf '%{VERSION}' "$T"/rpm/sluice-"$version"-1.*.rpm)" "$version"
check "its programs" "$(rpm -qpl "$T"/rpm/sluice-"$version"-1.*.rpm | grep -c '^/usr/bin/sluiced*$')" 2

echo "--- installed in a chroot"
bare_root bookworm dbus libcurl3-gnutls libjansson4 libmicrohttpd12 libnghttp2-14 libsqlite3-0 systemd-sysv
work=$ROOT/srv
cp -r "$T/one" "$T/two" "$work"
for program in stepper memhog nvml-view; do
	strip -o "$work/$program" "$B/tests/programs/$program"
done
find_all() { # what is called sluice in the system, but for what the test put there
	find "$ROOT" -xdev \( -path "$ROOT/srv" -o -path "$ROOT/proc" -o -path "$ROOT/sys" -o -path "$ROOT/tmp" -o -path "$ROOT/var/lib/systemd" \) \
		-prune -o -iname '*sluice*' -print | grep -v -e /etc/default/sluiced -e "^$ROOT/var/log"
}
check "nothing was there" "$(find_all)" ""
must "apt-get install" chroot "$ROOT" sh -c 'DEBIAN_FRONTEND=noninteractive apt-get install -y /srv/one/sluice_*.deb /srv/one/libsluice_*.deb /srv/one/sluice-kube_*.deb /srv/one/sluice-slurm_*.deb'
started=$(for process in /proc/[0-9]*; do
	[ "$(readlink "$process/root")" != "$ROOT" ] || cat "$process/comm"
done)
check "no process was started" "$started" ""
must "its configuration is taken" chroot "$ROOT" sluiced --check --config /etc/sluice/sluiced.conf
check "the plugin of Slurm has its keeper beside it" "$(chroot "$ROOT" sh -c 'cd /usr/lib/*/slurm && ls')" "sluice-slurm
spank_sluice.so"
check "sluice-kube starts" "$(chroot "$ROOT" sluice-kube --version)" "sluice-kube $version"

echo "--- booted"
rm "$ROOT/usr/sbin/policy-rc.d"
cat >"$ROOT/etc/systemd/system/box.service" <<'X'
[Unit]
Before=sluiced.service
[Service]
ExecStart=/usr/bin/sluice softgpu --shared --memory 1GiB -- sh -c 'echo "SLUICE_SOFTGPU=$SLUICE_SOFTGPU" >/srv/box.new; echo "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" >>/srv/box.new; mv /srv/box.new /etc/default/sluiced; exec sleep infinity'
X
systemd-nspawn --quiet --keep-unit --register=no --machine=sluice-test --directory="$ROOT" --boot >"$T/boot" 2>&1 </dev/null &
nspawn=$!
leader=
END=end_system
end_system() {
	[ -z "$leader" ] || kill -KILL "$leader" 2>/dev/null
	kill -KILL $nspawn 2>/dev/null
	wait $nspawn 2>/dev/null
}
has_leader() {
	leader=$(cat "/proc/$nspawn/task/$nspawn/children" 2>/dev/null)
	leader=${leader%% *}
	[ -n "$leader" ]
}
# in_system COMMAND...: on that system.
in_system() { nsenter --target "$leader" --mount --uts --ipc --net --pid --cgroup --root --wd -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
is_up() { in_system systemctl is-system-running | grep -q -e running -e degraded; }
if ! until_true 20 has_leader || ! until_true 120 is_up; then
	[ "$FAILED" = 0 ] || exit 1
	skip "no systemd boots in a container here: $(grep -v '^$' "$T/boot" | tail -n 1)"
fi
check "sluiced runs since the boot" "$(in_system systemctl is-active sluiced)" active
check "the unit" "$(in_system systemd-analyze verify --man=no sluiced.service 2>&1)" ""
must "a software GPU" in_system systemctl start box
until_true 20 test -s "$ROOT/etc/default/sluiced" || fail "no software GPU: $(in_system journalctl -u box -n 5 --no-pager)"
must "for the daemon" in_system systemctl restart sluiced
must "which reads its configuration again" in_system systemctl reload sluiced
on_gpu() { # on_gpu COMMAND...: with the software GPU, as a user types it
	# shellcheck disable=SC2046 # words
	in_system env $(cat "$ROOT/etc/default/sluiced") "$@"
}
has_gpu() { in_system sluice gpus --json | grep -q uuid; }
until_true 20 has_gpu || fail "the daemon has no GPU: $(in_system sluice gpus 2>&1)"

echo "--- started by systemd-run"
in_system systemd-run --quiet --wait --collect --pipe --property=EnvironmentFile=/etc/default/sluiced \
	sluice run --name unit --limit 200MiB -- /srv/memhog --piece 8MiB --rounds 1 >"$T/unit" 2>&1
ended=$?
check "a unit of sluice run: $(cat "$T/unit")" $ended 0
check "is limited" "$(sed -n 's/.*"took".*"bytes":\([0-9]*\).*CUDA_ERROR_OUT_OF_MEMORY.*/\1/p' "$T/unit")" $((200 << 20))
in_system sluice run --limit 200MiB -- systemd-run /srv/memhog >"$T/unit" 2>&1
check "a unit started by what sluice run starts is refused" $? 64

echo "--- upgraded under workloads"
steps() { grep -c '"event":"step"' "$work/$1.out"; }
has_steps() { [ "$(steps "$1")" -ge "$2" ]; }
used() { on_gpu /srv/nvml-view | sed -n 's/.*"what":"memory".*"used":\([0-9]*\).*/\1/p'; }
# The job's program writes where the others do.
on_gpu sluice run --name evicted --request 100MiB --limit 100MiB -- /srv/stepper --bytes 64MiB --ms 1 --steps 20 --until /srv/end >"$work/evicted.out" 2>"$work/evicted.err" &
evicted=$!
on_gpu sluice run --name runs --request 100MiB --limit 100MiB -- /srv/stepper --bytes 16MiB --ms 50 --steps 1000000 >"$work/runs.out" 2>"$work/runs.err" &
runs=$!
must "a job is taken" on_gpu sluice submit --name job --request 100MiB --limit 100MiB -- sh -c 'exec /srv/stepper --bytes 16MiB --ms 50 --steps 1000000 >/srv/job.out'
until_true 30 has_steps evicted 19 || fail "evicted does not step: $(tail -n 3 "$work/evicted.out" "$work/evicted.err")"
until_true 30 has_steps runs 3 || fail "runs does not step: $(tail -n 3 "$work/runs.out" "$work/runs.err")"
until_true 30 has_steps job 3 || fail "job does not step: $(in_system sluice why job 2>&1)"
before=$(used)
must "its memory goes to the host" in_system sluice park evicted
check "says the driver" "$([ $((before - $(used))) -ge $((64 << 20)) ] && echo yes || echo "$before, then $(used)")" yes
echo '# edited' >>"$ROOT/etc/sluice/sluiced.conf"
daemon() { in_system systemctl show -P MainPID sluiced; }
old=$(daemon)
must "apt-get upgrades" in_system sh -c 'apt-get install -y /srv/two/sluice_*.deb /srv/two/libsluice_*.deb /srv/two/sluice-kube_*.deb /srv/two/sluice-slurm_*.deb'
check "to the newer one" "$(chroot "$ROOT" dpkg-query -W -f '${Version}' sluice)" "$version-2"
check "the daemon is active" "$(in_system systemctl is-active sluiced)" active
check "and a new one" "$([ "$(daemon)" != "$old" ] && echo yes)" yes
check "of the new files" "$(in_system sh -c "readlink /proc/$(daemon)/exe")" /usr/bin/sluiced
check "the edited configuration is kept" "$(tail -n 1 "$ROOT/etc/sluice/sluiced.conf")" '# edited'
for name in runs job; do
	now=$(steps $name)
	until_true 30 has_steps $name $((now + 3)) || fail "$name does no more steps: $(in_system sluice why $name 2>&1)"
	check "$name began once" "$(grep -c '"event":"begin"' "$work/$name.out")" 1
	check "$name found its memory as it was, at each step" "$(grep -c '"wrong":[1-9]' "$work/$name.out")" 0
done
must "the evicted one comes back" in_system sluice resume evicted
touch "$work/end"
wait $evicted
check "and ends well" $? 0
check "with the right result" "$(sed -n 's/.*"right":\([a-z]*\).*/\1/p' "$work/evicted.out")" true

echo "--- removed"
pids() { # pids COMMAND: of that system's processes
	in_system sh -c "grep -lx $1 /proc/[0-9]*/comm 2>/dev/null" | sed 's|[^0-9]||g'
}
must "apt-get remove" in_system apt-get remove -y sluice libsluice sluice-kube sluice-slurm
check "no daemon runs" "$(pids sluiced)" ""
now=$(steps runs)
until_true 30 has_steps runs $((now + 3)) || fail "the program that ran does no more steps"
# The configuration, whether the daemon was enabled, and what it knows: for the next installation.
check "what is left" "$(find_all | sed "s|^$ROOT||" | sort | grep -v -e ^/run/ -e /var/lib/dpkg/ | tr '\n' ' ')" \
	"/etc/sluice /etc/sluice/sluiced.conf /etc/systemd/system/multi-user.target.wants/sluiced.service /var/lib/sluice "
# shellcheck disable=SC2046 # words
in_system sh -c "kill $(echo $(pids stepper))"
wait $runs
must "apt-get purge" in_system apt-get purge -y sluice libsluice sluice-kube
check "nothing is left" "$(find_all)$(in_system find /run -name '*sluice*' -not -path '/run/user/*' -not -path '/run/systemd/*')" ""

echo "--- installed again, while the system runs"
must "apt-get install" in_system sh -c 'apt-get install -y /srv/two/sluice_*.deb /srv/two/libsluice_*.deb'
check "the daemon runs" "$(in_system systemctl is-active sluiced)" active
[ "$FAILED" = 0 ]
