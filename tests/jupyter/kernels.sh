#!/bin/sh
# Notebooks of a real Jupyter server on one GPU that holds one and a half of them: kernels.py says which scenes.
export BOX="--gpus 1 --memory 192MiB --module 64KiB"
export LIMIT=540
. "$(dirname "$0")/../system/lib.sh"
software_only "the scenes need a GPU of 192 MiB"
. "$(dirname "$0")/lib.sh"
"$PYTHON" "$HERE/kernels.py"
status=$?
logs $status
check "what the scenes found" $status = 0
finish
