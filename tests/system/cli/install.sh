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
printf '#!/bin/sh\n' >"$work/apptainer"
chmod +x "$work/apptainer"
expect 'the remedy for containers can be typed' 64 " IMAGE $prefix/bin/sluice run" "$sluice" run -- "$work/apptainer"
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
{ command -v zsh && command -v fish; } >/dev/null || "$(dirname "$0")/../../../tools/packages" zsh fish
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
	same 'completion of an amount' "$(completed sluice run --request 0.2)" 0.25
	same 'completion of a value behind =' "$(completed sluice run --swap = '')" 'on off'
	same 'completion of nothing yet behind =' "$(completed sluice run --swap =)" 'on off'
	same 'completion of part of a value behind =' "$(completed sluice run --swap = of)" off
	same 'no commands for a value' "$(completed sluice run --priority '')" ''
	same 'completion of a time' "$(completed sluice events --since 1)" '10m 1h'
	same 'completion of kinds' "$(completed sluice events --kind st)" stop
	same 'completion of actions' "$(completed sluice project '')" 'apply list show delete'
	fake lists 2>/dev/null
	for verb in set stop why 'events --name'; do
		# shellcheck disable=SC2086 # words are meant
		same "completion of names: $verb" "$(completed sluice $verb a-model-server-)" \
			'a-model-server-0 a-model-server-1 a-model-server-2'
	done
	# Names are other people's, and shells expand words.
	same 'names of harmless characters only' "$("$sluice" help --complete -- why '' | grep -c '[^A-Za-z0-9._:@%+=,/-]')" 0
fi
if command -v zsh >/dev/null; then
	same 'the completion of zsh' "$(PATH=$prefix/bin:$PATH zsh -fc '
		compdef() { :; }
		compadd() { shift 3; shift; print -l -- ${(P)1}; }
		compset() { case $PREFIX in $~2*) PREFIX=${PREFIX#$~2} ;; *) false ;; esac; }
		. "$0"
		words=(sluice run --swap "") CURRENT=4 PREFIX=
		_sluice
		words=(sluice run --swap=o) CURRENT=3 PREFIX=--swap=o
		_sluice' "$prefix/share/zsh/site-functions/_sluice" | tr '\n' ' ')" 'on off on off '
fi
if command -v fish >/dev/null; then
	same 'the completion of fish' "$(PATH=$prefix/bin:$PATH fish -N -c "source $prefix/share/fish/vendor_completions.d/sluice.fish
		complete -C 'sluice run --swap '; complete -C 'sluice run --swap=o'" | sort | tr '\n' ' ')" '--swap=off --swap=on off on '
fi
finish
