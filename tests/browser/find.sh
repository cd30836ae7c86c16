# find - what a test in a browser needs, for sourcing: node, Chromium, playwright-core. Sets SLUICE_NODE, SLUICE_CHROMIUM and SLUICE_PLAYWRIGHT,
# or ends the test with 77 and a line that says what is missing. As root on Debian what is missing is installed
# first, unless SLUICE_FIND_ONLY is set.
# shellcheck shell=sh
find_tool() {
	for find_name in "$@"; do
		command -v "$find_name" 2>/dev/null && return 0
	done
	return 1
}
find_skip() {
	echo "  skipped: $*"
	exit 77
}
find_missing=
find_tool node nodejs >/dev/null || find_missing="$find_missing nodejs"
# Debian's npm brings hundreds of packages; it is needed only for what was not fetched before.
"$(dirname "$0")/../../tools/web-parts" browser >/dev/null 2>&1 || find_tool npm >/dev/null || find_missing="$find_missing npm"
find_tool chromium chromium-browser google-chrome >/dev/null || find_missing="$find_missing chromium"
if [ -n "$find_missing" ] && [ -z "${SLUICE_FIND_ONLY-}" ]; then
	echo "  installing$find_missing"
	# shellcheck disable=SC2086 # a list of words is meant
	"$(dirname "$0")/../../tools/packages" $find_missing
fi
SLUICE_NODE=$(find_tool node nodejs) || find_skip "no node; install nodejs"
SLUICE_CHROMIUM=$(find_tool chromium chromium-browser google-chrome) || find_skip "no Chromium; install chromium"
SLUICE_PLAYWRIGHT=$("$(dirname "$0")/../../tools/web-parts" browser) || find_skip "no playwright-core (npm or network is missing)"
export SLUICE_NODE SLUICE_CHROMIUM SLUICE_PLAYWRIGHT
