#!/bin/sh
# JupyterLab in a browser: three notebooks on a GPU that holds one and a half, and what the status bar says of them (lab.mjs).
# SLUICE_SHOTS=FOLDER keeps pictures.
export BOX="--gpus 1 --memory 192MiB --module 64KiB"
export LIMIT=540
if [ -z "${SLUICE_TEST_INSIDE-}" ]; then
	# shellcheck source-path=SCRIPTDIR
	. "$(dirname "$0")/../browser/find.sh"
fi
. "$(dirname "$0")/../system/lib.sh"
software_only "the scenes need a GPU of 192 MiB"
. "$(dirname "$0")/lib.sh"
"$PYTHON" "$HERE/lab.py"
status=$?
logs $status
check "what the browser saw" $status = 0
finish
