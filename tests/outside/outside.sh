#!/bin/sh
# A suite of tests by other people: SLUICE_OUTSIDE names its folder. It runs on the software GPU alone and then as
# a workload, and each test must end both times as the suite's list says. A test that is missing in the list, or in
# the results, fails as well. In the folder:
# requirements.txt, build.sh   tools/clients-venv makes the environment from these
# suite.sh    suite RESULTS WORD...: runs the tests behind these words, and writes a line "NAME OUTCOME" for each
# list        a line per test: name, outcome alone, outcome under Sluice, and the reason unless both are pass.
# Outcomes: pass, fail, skip (by the test itself); -: not run
# OUTSIDE_KEEP=FOLDER copies the files of the tests there, to bring the list up to date.
export BOX="--gpus 2 --memory 1GiB"
export LIMIT=1740
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/../system/lib.sh"
software_only "the lists are the software GPU's"
folder=$HERE/$SLUICE_OUTSIDE
venv=$("$HERE/../../tools/clients-venv" --set "outside/$SLUICE_OUTSIDE" 2>"$T/why") || skip "$(tail -n 1 "$T/why")"
export PYTHONDONTWRITEBYTECODE=1

# pytest_suite FOLDER RESULTS WORD...: all tests in the folder.
pytest_suite() {
	suite_folder=$1 suite_results=$2
	shift 2
	(
		cd "$suite_folder" || exit
		OUTSIDE_LIST="$folder/list" OUTSIDE_RESULTS="$suite_results" PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}" \
			"$@" "$venv/bin/python" -m pytest -p outcomes -p no:cacheprovider --rootdir . -q --tb=short -rfE \
			--continue-on-collection-errors . >"$suite_results.log" 2>&1
	)
}
# differences COLUMN RESULTS: a line per test that did not end as this column of the list says.
differences() {
	awk -v column="$1" '
		/^#/ || !NF { next }
		FILENAME == ARGV[1] { want[$1] = $column; next }
		{ got[$1] = $2 }
		END {
			for (name in want) {
				outcome = name in got ? got[name] : "no result"
				if (outcome != want[name])
					print name ": the list says " want[name] ", it was: " outcome
			}
			for (name in got)
				if (!(name in want))
					print name ": not in the list, it was: " got[name]
		}' "$folder/list" "$2" | sort
}
# try NAME COLUMN WORD...
try() {
	try_name=$1 try_column=$2
	shift 2
	: >"$T/$try_name"
	suite "$T/$try_name" "$@"
	[ -z "${OUTSIDE_KEEP-}" ] || cp "$T/$try_name" "$T/$try_name.log" "$OUTSIDE_KEEP"
	differences "$try_column" "$T/$try_name" >"$T/differences"
	CHECKS=$((CHECKS + 1))
	if [ -s "$T/differences" ]; then
		tail -n 60 "$T/$try_name.log" | cut -c 1-300 | sed 's/^/      /'
		fail "$SLUICE_OUTSIDE $try_name: $(wc -l <"$T/differences") tests differ from $SLUICE_OUTSIDE/list"
		sed 's/^/      /' "$T/differences"
	else
		note "ok: $try_name: $(awk '{ print $2 }' "$T/$try_name" | sort | uniq -c | tr -s ' \n' ' ')"
	fi
}

# shellcheck source=/dev/null
. "$folder/suite.sh"
"$HERE/table" >/dev/null 2>"$T/rows"
check "faulty rows of the lists" "$(cat "$T/rows")" = ""
try alone 2 env
daemon_start
# shellcheck disable=SC2086 # options are words
try under 3 $RUN --gpus 2 --request 200MiB --limit 600MiB
check_books_empty
finish
