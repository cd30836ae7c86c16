#!/bin/sh
# What `make install` puts somewhere works from there: the library, the daemon, the software GPU,
# the pages, the unit, and bash completion.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
unset SLUICE_SOCKET SLUICE_STATE
command -v meson >/dev/null || skip 'no meson here'

DESTDIR=$work/dest meson install -C "$SLUICE_BUILD" --no-rebuild --quiet >"$work/log" 2>&1 ||
	{ fail "meson install: $(cat "$work/log")"; finish; }
installed=$(find "$work/dest" -path '*/bin/sluice') || exit 1
prefix=$(dirname "$(dirname "$installed")")
sluice=$installed

expect 'the library is found' 0 "^library  $prefix/lib.*/sluice/libsluice.so$" env -u SLUICE_LIBRARY "$sluice" version
[ -n "$is_sanitized" ] || export SLUICE_LIBRARY=
preload=${is_sanitized:+$library}
expect 'a workload on installed software GPUs' 0 "^LD_PRELOAD=${preload:-$prefix/}" \
	"$sluice" softgpu --memory 1GiB -- sh -c '
		sluiced 2>"$0" & daemon=$!
		tries=0
		until sluice gpus >/dev/null 2>&1; do
			tries=$((tries + 1)); [ $tries -gt 200 ] && { cat "$0" >&2; exit 99; }
			sleep 0.05
		done
		sluice run --request 0.5 -- env
		status=$?
		kill $daemon
		exit $status' "$work/daemon.log"
printf '#!/bin/sh\n' >"$work/docker"
chmod +x "$work/docker"
expect 'the remedy for containers can be typed' 64 " IMAGE $prefix/bin/sluice run" "$sluice" run -- "$work/docker"
for verb in $("$sluice" help --names); do
	[ "$verb" = help ] && continue
	rows=$((rows + 1))
	[ -e "$prefix/share/man/man1/sluice-$verb.1" ] || fail "no page for $verb"
done
for page in man8/sluiced.8 man5/sluiced.conf.5; do
	rows=$((rows + 1))
	[ -e "$prefix/share/man/$page" ] || fail "no page $page"
done
unit=$prefix/lib/systemd/system/sluiced.service
expect 'the unit starts the daemon that was installed' 0 \
	"^ExecStart=${prefix#"$work/dest"}/bin/sluiced " cat "$unit"
same 'nothing is left to fill in' "$(grep -c '@' "$unit")" 0

# --- completion: what sluice itself says
completed() {
	PATH=$prefix/bin:$PATH bash -c '
		. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_sluice
		echo "${COMPREPLY[*]}"' "$prefix/share/bash-completion/completions/sluice" "$@"
}
if command -v bash >/dev/null; then
	same 'completion of a verb' "$(completed sluice 'do')" doctor
	same 'completion of an option' "$(completed sluice run --req)" --request
	same 'completion of softgpu' "$(completed sluice softgpu --tear)" --teardown-ms
	same 'completion of help' "$(completed sluice help gp)" gpus
	same 'none behind --' "$(completed sluice run -- --requ)" ''
	same 'completion of every verb' "$(completed sluice '' | tr ' ' '\n' | sort)" "$("$sluice" help --names | sort)"
	for verb in $("$sluice" help --names); do
		same "completion of all options of $verb" "$(completed sluice "$verb" -- | tr ' ' '\n')" \
			"$("$sluice" "$verb" --help | sed -n 's/^  \(--[^ ]*\).*/\1/p')"
	done
	same 'completion of a value' "$(completed sluice run --swap '')" 'on off'
	same 'completion of part of a value' "$(completed sluice set x --oom-first of)" off
	# compgen expands its words, and names are other people's.
	mkdir "$work/hostile"
	# shellcheck disable=SC2016 # it is not for this shell
	printf '#!/bin/sh\ncat <<"NAMES"\nNAME\n$(touch${IFS}%s)  x\n`id`  x\nfine-1  x\nNAMES\n' "$work/executed" >"$work/hostile/sluice"
	chmod +x "$work/hostile/sluice"
	same 'completion of hostile names' "$(PATH=$work/hostile:$PATH bash -c '
		. "$0"
		COMP_WORDS=(sluice why "") COMP_CWORD=2
		_sluice
		echo "${COMPREPLY[*]}"' "$prefix/share/bash-completion/completions/sluice")" fine-1
	[ ! -e "$work/executed" ] || fail 'completion executes the name of a workload'
	fake lists 2>/dev/null
	for verb in set stop why 'events --name'; do
		# shellcheck disable=SC2086 # words are meant
		same "completion of names: $verb" "$(completed sluice $verb a-model-server-)" \
			'a-model-server-0 a-model-server-1 a-model-server-2'
	done
fi
finish
