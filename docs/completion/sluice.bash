# bash completion for sluice: what may stand here is sluice's to say (`sluice help --complete`).
_sluice() {
	local cur=${COMP_WORDS[COMP_CWORD]} said
	said=$(sluice help --complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
	# In --option=VALUE the = is a word of its own.
	[ "$cur" = = ] && cur=
	COMPREPLY=()
	case $said in
	:commands) mapfile -t COMPREPLY < <(compgen -c -f -- "$cur") ;;
	:files)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		;;
	:folders)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		;;
	*) mapfile -t COMPREPLY < <(compgen -W "$said" -- "$cur") ;;
	esac
}
complete -F _sluice sluice
