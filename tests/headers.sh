#!/bin/sh
# Our declarations and our list of names against NVIDIA's headers (from the clients' environment, or a toolkit that is
# installed) and against a real libcuda.so.1 where there is one. Skips where there is neither.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
folders=$("$top/tools/clients-venv" --include 2>/dev/null) || folders=
[ -e /usr/local/cuda/include/cuda.h ] && folders="$folders /usr/local/cuda/include"
compared=0 status=0
"$top/tools/check-names" --if-any
case $? in
0) compared=1 ;;
77) ;;
*) status=1 ;;
esac
for folder in $folders; do
	compared=1
	if [ -e "$folder/cuda.h" ]; then
		"$top/tools/check-names" "$folder" || status=1
	fi
	"$top/tools/check-abi" "$folder" || status=1
done
[ "$status" = 0 ] && [ "$compared" = 0 ] && exit 77
exit $status
