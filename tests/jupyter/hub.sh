#!/bin/sh
# JupyterHub with the example's configuration: two users of two groups, each with an amount of its own (hub.py). All servers run as the user of the test.
export BOX="--gpus 1 --memory 192MiB --module 64KiB"
export LIMIT=540
. "$(dirname "$0")/../system/lib.sh"
software_only "amounts are those of a GPU of 192 MiB"
. "$(dirname "$0")/lib.sh"
export HUB_EXAMPLE="$T/source/examples/jupyterhub_config.py"
"$PYTHON" "$HERE/hub.py"
status=$?
[ $status = 0 ] || tail -n 40 "$T/hub.log" | cut -c 1-300
check "what the users found" $status = 0
finish
