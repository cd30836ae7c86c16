#compdef sluice
# zsh completion for sluice: what may stand here is sluice's to say (`sluice help --complete`).
_sluice() {
	local said line
	local -a values texts asked=("${(@)words[2,CURRENT]}")
	# --option=VALUE: sluice is asked with the = as a word of its own.
	compset -P '--*=' && asked[-1]=("${asked[-1]%%=*}" = "$PREFIX")
	said=$(sluice help --complete -- "${(@)asked}" 2>/dev/null)
	case $said in
	:commands) _command_names -e || _files ;;
	:files) _files ;;
	:folders) _files -/ ;;
	*)
		for line in ${(f)said}; do
			values+=("${line%%$'\t'*}")
			texts+=("${line/$'\t'/  -- }")
		done
		compadd -l -d texts -a values
		;;
	esac
}
[ "$funcstack[1]" = _sluice ] && _sluice "$@" || compdef _sluice sluice
