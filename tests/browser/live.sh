#!/bin/sh
# The page in a browser, against a real daemon with software GPUs: workloads that burst, wait, are swapped, parked and reclaimed, and each view
# compared with what the API says. SLUICE_SHOTS=FOLDER keeps pictures.
export BOX="--gpus 1 --memory 1GiB" LIMIT=200
if [ -z "${SLUICE_TEST_INSIDE-}" ]; then
	# shellcheck source-path=SCRIPTDIR
	. "$(dirname "$0")/find.sh"
fi
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../system/lib.sh"
software_only "a GPU of 1 GiB"
# Any address of 127.0.0.0/8 will do, so each run has one of its own.
H=127.$((64 + $$ / 62500 % 64)).$(($$ / 250 % 250)).$(($$ % 250 + 1))
config 'resolvers: [swap, wait]'
config "page: \"$H:7654\""
config 'measure_interval: 100ms'
config "data_dir: $T/data"
daemon_start
cat >"$T/projects.yaml" <<'END'
projects:
  vision: {gpu: {quota: 0.25}}
  chat: {gpu: {quota: 0.6}}
END
"$B/sluice" project apply "$T/projects.yaml" >/dev/null
export PAGE_BASE="http://$H:7654" PAGE_BUILD="$B" PAGE_FOLDER="$T"
PAGE_TOKEN=$("$B/sluice" page --json | json token)
export PAGE_TOKEN
"$SLUICE_NODE" "$(dirname "$0")/live.mjs" &
BROWSER=$!
# It asks for a restart of the daemon by a file.
until gone "$BROWSER"; do
	if [ -e "$T/restart" ]; then
		daemon_kill
		daemon_start
		rm -f "$T/restart"
	fi
	sleep 0.1
done
wait "$BROWSER"
check "what the browser saw" $? = 0
finish
