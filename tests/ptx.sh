#!/bin/sh
# NVIDIA's assembler takes the hash's PTX, for the oldest GPUs that Sluice supports and for newer ones. It comes with the
# clients' environment or a toolkit that is installed, which may no longer know the oldest; skips where there is neither.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
folder=$("$top/tools/clients-venv" 2>/dev/null) || folder=/nowhere
PATH=$PATH:/usr/local/cuda/bin:$folder/ptx/nvidia/cuda_nvcc/bin
if ! command -v ptxas >/dev/null; then
	echo "ptx: no ptxas here"
	exit 77
fi
ptxas --version | tail -n 1
status=0 taken=0
for gpu in sm_70 sm_75 sm_80 sm_90; do
	if ! ptxas --help | grep -q "'$gpu'"; then
		echo "$gpu: not known to this ptxas"
	elif ptxas --warning-as-error "-arch=$gpu" -o "$tmp/$gpu" "$top/src/runtime/hash/kernel.ptx"; then
		taken=$((taken + 1))
		echo "$gpu: $(wc -c <"$tmp/$gpu") bytes of code"
	else
		status=1
	fi
done
[ $taken -gt 0 ] || status=1
exit $status
