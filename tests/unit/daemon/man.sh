#!/bin/sh
# The rows of sluiced.conf(5) are those of the option table, and sluiced(8) names every option.
# man.sh SLUICED MAN-FOLDER
set -eu
want=$("$1" --help-config=mdoc)
have=$(sed -n '/^\.\\" begin$/,/^\.\\" end$/p' "$2/sluiced.conf.5" | sed '1d;$d')
if [ "$want" != "$have" ]; then
	echo "sluiced.conf.5 differs from the table; its rows should be:"
	echo "$want"
	exit 1
fi
for option in $("$1" --help | grep -oE -e '--[a-z-]+' | sort -u); do
	if ! grep -q "Fl Fl ${option#--}\\b" "$2/sluiced.8"; then
		echo "sluiced.8 lacks $option"
		exit 1
	fi
done
[ "$("$1" --help-config | grep -c '^[a-z_]*: ')" = "$(echo "$want" | grep -c '^\.It')" ]
