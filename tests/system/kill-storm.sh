#!/bin/sh
# A thousand kills of clients and daemon at random moments; COUNT and SEED from the environment.
b=${1:?usage: $0 BUILD_DIR}
exec timeout -k 5 590 "$b/sluice" softgpu --gpus 1 --memory 1GiB -- \
	"$b/tests/system/kill-storm" "$b" "${COUNT:-1000}" ${SEED:+"$SEED"}
