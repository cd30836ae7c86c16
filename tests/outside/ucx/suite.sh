# A program of ours over UCX, because its package has no tests: two processes in one workload (ucx.c).
# UCX calls functions that a sanitizer has taken over in its constructors, which run before the sanitizer's.
[ -z "${ASAN_OPTIONS-}${TSAN_OPTIONS-}" ] || skip "UCX and a sanitizer do not go together"
ucx=$(echo "$venv"/lib/python3*/site-packages/libucx)
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -O2 -I"$HERE/../../src" -I"$ucx/include" "$folder/ucx.c" -o "$T/ucx" \
	-L"$ucx/lib" -lucp -lucs -Wl,-rpath,"$ucx/lib" "$B/src/softgpu/libcuda.so.1" || fail "ucx.c does not compile"
# No network, which depends on the machine; fewer pieces of memory to copy through than half a gigabyte of them.
export UCX_TLS=sm,cuda UCX_RNDV_FRAG_ALLOC_COUNT=host:16,cuda:8 UCX_PROTO_INFO=y UCX_LOG_FILE="$T/ucx.log"
suite() {
	suite_results=$1
	shift
	: >"$UCX_LOG_FILE"
	"$@" "$T/ucx" >"$suite_results" 2>"$suite_results.log"
	ended=$?
	check "$(basename "$suite_results"): status" $ended = 0
	check_file "UCX opened the other process's memory" "$UCX_LOG_FILE" cuda_ipc/cuda
}
