#!/bin/sh
# Every route of the page's API is described in docs/api.md. page-docs.sh UNIT-DAEMON-PAGE API.MD
set -eu
status=0
"$1" routes | sed 's|/assets/\*|/assets/NAME|; s|/api/resources/\*|/api/resources/NAME|; s|/api/projects/\*|/api/projects/NAME|; s|\*|ID|' |
	{
		while read -r method path; do
			grep -qF "| \`$method $path\` |" "$2" || {
				echo "docs/api.md lacks $method $path"
				status=1
			}
		done
		exit $status
	}
