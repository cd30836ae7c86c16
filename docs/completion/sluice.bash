# bash completion for sluice. Verbs and options come from sluice itself, so this never lags.
_sluice() {
	local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} i
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(sluice help --names 2>/dev/null)" -- "$cur")
		return
	fi
	# After "--" the words are those of another program.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			compopt -o default 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
			return
		fi
	done
	case $verb,$cur in
	help,*) mapfile -t COMPREPLY < <(compgen -W "$(sluice help --names 2>/dev/null)" -- "$cur") ;;
	*,-*)
		mapfile -t COMPREPLY < <(compgen -W "$(sluice "$verb" --help 2>/dev/null |
			sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')" -- "$cur")
		;;
	set,* | stop,* | why,*)
		# Names of workloads; into a pipe they are never cut.
		mapfile -t COMPREPLY < <(compgen -W "$(sluice ps 2>/dev/null |
			sed -n '1d; s/ .*//p')" -- "$cur")
		;;
	run,* | softgpu,*) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur") ;;
	esac
}
complete -F _sluice sluice
