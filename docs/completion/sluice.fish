# fish completion for sluice: what may stand here is sluice's to say (`sluice help --complete`).
function __sluice_complete
	set -l words (commandline -opc)
	set -l current (commandline -ct)
	# --option=VALUE: sluice is asked with the = as a word of its own.
	set -l option (string match -r -- '^--[^=]+=' "$current")
	if set -q option[1]
		set -a words (string trim -r -c = -- $option) =
		set current (string replace -- $option '' "$current")
	else
		set option ''
	end
	set -l said (sluice help --complete -- $words[2..-1] "$current" 2>/dev/null)
	switch "$said[1]"
		case :commands
			__fish_complete_command
		case :files
			printf '%s\n' $option(__fish_complete_path "$current")
		case :folders
			printf '%s\n' $option(__fish_complete_directories "$current")
		case '*'
			printf '%s\n' $option$said
	end
end
complete -c sluice -f -a '(__sluice_complete)'
