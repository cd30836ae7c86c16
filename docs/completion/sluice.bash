# bash completion for sluice. Verbs and options come from sluice itself, so this never lags.
# Names of workloads; into a pipe they are never cut. Other users choose them, and compgen -W expands
# its words as the shell does, so only those of harmless characters are offered.
_sluice_names() {
	sluice ps 2>/dev/null | sed -n '1d; s/ .*//p' | grep -x '[A-Za-z0-9._:@%+=,/-]*' | sort -u
}

# And of jobs, those that have ended too.
_sluice_jobs() {
	sluice ps --all 2>/dev/null | sed -n '1d; s/^ *[0-9]*  *\([^ ]*\).*/\1/p' |
		grep -x '[A-Za-z0-9._:@%+=,/-]*' | sort -u
}

_sluice_projects() {
	sluice project list 2>/dev/null | sed -n '1d; s/^ *\([A-Za-z0-9._-]*\).*/\1/p'
}

_sluice() {
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} i words
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
	# The value of an option: words that --help lists as a|b, or the name of a workload.
	case $before in
	--name) [ "$verb" = events ] && words=$(_sluice_names) ;;
	--project) words=$(_sluice_projects) ;;
	--dir)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--*[!a-z-]*) ;;
	--*)
		words=$(sluice "$verb" --help 2>/dev/null |
			sed -n "s/^  $before \([a-z]*|[a-z|]*\).*/\1/p" | tr '|' ' ')
		;;
	esac
	if [ -n "$words" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
	fi
	case $verb,$cur in
	*,-*)
		mapfile -t COMPREPLY < <(compgen -W "$(sluice "$verb" --help 2>/dev/null |
			sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')" -- "$cur")
		;;
	help,*) mapfile -t COMPREPLY < <(compgen -W "$(sluice help --names 2>/dev/null)" -- "$cur") ;;
	project,*)
		case $before in
		apply) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		show | delete) mapfile -t COMPREPLY < <(compgen -W "$(_sluice_projects)" -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W 'apply list show delete' -- "$cur") ;;
		esac
		;;
	park,* | resume,* | set,* | stop,* | why,*) mapfile -t COMPREPLY < <(compgen -W "$(_sluice_names)" -- "$cur") ;;
	logs,* | wait,*) mapfile -t COMPREPLY < <(compgen -W "$(_sluice_jobs)" -- "$cur") ;;
	run,* | submit,* | softgpu,*) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur") ;;
	esac
}
complete -F _sluice sluice
