#!/bin/sh
# The configuration that nothing names: of a user, of root; the sample; and --check.
. "$(dirname "$0")/lib.sh"
software_only "the daemon belongs to another user"
checked() {
	"$B/sluiced" --check "$@" >"$T/checked" 2>&1
}
note "--check"
echo 'host_slack: 64MiB' >"$T/good.conf"
checked "$T/good.conf"
check "a good file" $? = 0
echo 'host_slak: 64MiB' >"$T/bad.conf"
checked "$T/bad.conf"
check "a bad file" $? = 2
check_file "says what was meant" "$T/checked" 'bad.conf.*host_slack'
checked "$T/none.conf"
check "one that is not there" $? = 2
echo 'page: "0.0.0.0:7654"' >"$T/open.conf"
checked "$T/open.conf"
check "keys that do not go together" $? = 2
check_file "say what is missing" "$T/checked" 'page_certificate'
timeout 5 "$B/sluiced" "$T/good.conf" >"$T/checked" 2>&1
check "a file without --check or --config" $? = 2

note "the sample"
"$B/sluiced" --help-config=sample >"$T/sample.conf"
checked "$T/sample.conf"
check "is good as it is" $? = 0
sed 's/^#\([a-z_]*: \)/\1/' "$T/sample.conf" >"$T/all.conf"
checked "$T/all.conf"
check "and with every key that it names" $? = 0
check "which are all" "$(grep -c '^[a-z_]*: ' "$T/all.conf")" = "$("$B/sluiced" --help-config | grep -c '^[a-z]')"

[ "$(id -u)" = 0 ] || skip "only root can be two users"
note "of a user"
chmod 755 "$T"
mkdir -p "$T/home/.config/sluice" "$T/run"
chown -R 65534 "$T/home" "$T/run"
as_user() {
	setpriv --reuid 65534 --clear-groups --inh-caps=-all env -u SLUICE_SOCKET HOME="$T/home" XDG_CONFIG_HOME= \
		XDG_RUNTIME_DIR="$T/run" "$@"
}
as_user "$B/sluiced" --check >"$T/checked" 2>&1
check "not there: defaults" $? = 0
check_file "which is said" "$T/checked" 'home/.config/sluice/sluiced.conf: not there'
cp "$T/bad.conf" "$T/home/.config/sluice/sluiced.conf"
as_user timeout 5 "$B/sluiced" >"$T/checked" 2>&1
check "a bad one is read, and refused" $? = 2

setpriv --reuid 65534 --clear-groups --inh-caps=-all env -u SLUICE_SOCKET -u XDG_CONFIG_HOME HOME=/root "$B/sluiced" --check >"$T/checked" 2>&1
check "of a home that is another's: defaults" $? = 0
note "of root"
if unshare --mount true 2>/dev/null; then
	export B T
	unshare --mount sh -c 'mkdir -p "$T/etc/sluice" && cp "$T/bad.conf" "$T/etc/sluice/sluiced.conf" && mount --bind "$T/etc" /etc &&
		"$B/sluiced" --check' >"$T/checked" 2>&1
	check "the usual one is read" $? = 2
	check_file "by its name" "$T/checked" '/etc/sluice/sluiced.conf.*host_slack'
fi
finish
