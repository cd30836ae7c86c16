#!/bin/sh
# The man pages say what --help says: every verb has a page, every option and exit status its
# row, every check of doctor its name; and mandoc finds nothing to complain about.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
: "${SLUICE_SOURCE:?names the source folder}"
man=$SLUICE_SOURCE/docs/man

# has NAME PAGE WORDS: the page has a line with exactly these words.
has() {
	rows=$((rows + 1))
	grep -q -x -F -e "$3" "$2" || fail "$1: $(basename "$2") has no line '$3'"
}

for verb in $("$sluice" help --names); do
	[ "$verb" = help ] && continue
	page=$man/sluice-$verb.1
	rows=$((rows + 1))
	[ -f "$page" ] || { fail "$verb has no page"; continue; }
	has "$verb in the overview" "$man/sluice.1" ".It Cm $verb"
	# Lines of --help that begin with an option, and what stands for its value.
	"$sluice" "$verb" --help | sed -n 's/^  --\([a-z0-9-]*\)\( \([^ ]*\)\)\{0,1\}\( .*\)*$/\1 \3/p' |
		while read -r option value; do
			[ "$option" = help ] && continue
			grep -q -e '^\.Op Ar options' -e "^\.Op Fl Fl $option\( \|$\)" "$page" ||
				echo ".Op Fl Fl $option"
			if [ -z "$value" ]; then
				echo ".It Fl Fl $option"
			else
				case $value in
				'['*) echo ".It Fl Fl $option Op Ar $(echo "$value" | tr -d '[]')" ;;
				*) echo ".It Fl Fl $option Ar $value" ;;
				esac
			fi
		done >"$work/items"
	while read -r line; do
		has "option of $verb" "$page" "$line"
	done <"$work/items"
	# And no option in the page that the verb does not know.
	sed -n 's/^\.It Fl Fl \([a-z0-9-]*\).*/\1/p' "$page" | while read -r option; do
		"$sluice" "$verb" --help | grep -q -e "^  --$option\( \|$\)" ||
			echo "$verb does not know --$option"
	done >"$work/unknown"
	same "options of $verb that are none" "$(cat "$work/unknown")" ''
done
"$sluice" help --exits >"$work/exits"
while read -r code text; do
	has "exit status $code" "$man/sluice.1" ".It $code"
	has "exit status $code" "$man/sluice.1" "$text"
done <"$work/exits"
for check in $(sed -n 's/^SL_CHECK(\(.*\))$/\1/p' "$SLUICE_SOURCE/src/cli/doctor/checks.def"); do
	has "check $check" "$man/sluice-doctor.1" ".It $check"
done
if command -v mandoc >/dev/null; then
	for page in "$man"/sluice*.1; do
		rows=$((rows + 1))
		mandoc -T lint -W error "$page" >"$work/lint" 2>&1 ||
			fail "mandoc: $(cat "$work/lint")"
	done
fi
finish
