#!/bin/sh
# The compose file of the guide: two services at the same time, each a workload with its own request and limit. The commands are
# those in the file's head.
# shellcheck disable=SC2086,SC2153 # PODMAN and PLAIN are lists of words
export BOX="--gpus 1 --memory 1GiB" LIMIT=150
. "$(dirname "$0")/lib.sh"
command -v podman-compose >/dev/null || skip "podman-compose is not installed (Debian: apt install podman-compose)"
example=$(cd "$(dirname "$0")/../../docs/guide/examples" && pwd)/compose.yaml
mib=1048576
daemon_start
tar -C "$ROOT" -c . | $PODMAN import - localhost/tenant >"$T/out" 2>&1
mkdir "$T/bin"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$B/sluice" >"$T/bin/sluice"
# As PLAIN: no networks here. And the words of PODMAN.
cat >"$T/bin/podman" <<END
#!/bin/sh
[ "\$1" != network ] || exit 0
skip= first=\${1-}
case "\$first" in run | create) ;; *) false ;; esac && {
	shift
	set -- "\$first" $PLAIN "\$@"
	for word; do
		shift
		case "\$skip\$word" in
		--net | --network-alias) skip=next ;;
		next*) skip= ;;
		*) set -- "\$@" "\$word" ;;
		esac
	done
}
exec $(dirname "$(command -v podman)")/$PODMAN "\$@"
END
chmod +x "$T/bin/podman" "$T/bin/sluice"
export PATH="$T/bin:$PATH"
sed -n 's/^#   \(sluice .*\)/\1/p' "$example" | sed -e "s|-f compose.yaml|-f $example|" >"$T/commands"
check "the file's head has two commands" "$(wc -l <"$T/commands")" = 2
while read -r command; do
	name=${command##* }
	(cd "$T" && exec timeout 90 sh -c "$command" >"$T/$name" 2>"$T/$name.err" </dev/null) &
done <"$T/commands"
for name in serve train; do
	wait_event "$T/$name" held 60
done
check "both are at the driver" "$(at_driver)" = 2
check "the request of one counts" "$(gpu requests_bytes)" = $((200 * mib))
wait_event "$T/serve" end
wait_event "$T/train" end
check "serve has its limit" "$(json -l event=held total <"$T/serve")" = $((300 * mib))
check "train has its own" "$(json -l event=held total <"$T/train")" = $((400 * mib))
for name in serve train; do
	check "$name reads what it wrote" "$(json -l event=end wrong <"$T/$name")" = 0
	until_true 20 is_over $name
	check "$name is over with its container" $? = 0
done
check_books_empty
finish
