# PyCUDA is published as source only, and a source package installs no tests: they are taken out of it. It takes
# about 75 seconds of one processor, once. It links to an empty libcuda: the real one is found when it is loaded.
command -v g++ >/dev/null 2>&1 || "$top/tools/packages" g++ || true
command -v g++ >/dev/null 2>&1 || skip "PyCUDA is built from source; install g++"
build=$folder/build
mkdir "$build"
echo | cc -shared -Wl,-soname,libcuda.so.1 -x c - -o "$build/libcuda.so"
CPATH=$(find "$folder" -name cuda.h -printf '%h:'; find "$folder" -name cudaProfiler.h -printf '%h')
# Its build reads one file of settings, in the user's home.
echo 'CUDA_ENABLE_CURAND = False' >"$build/.aksetup-defaults.py"
export CPATH HOME="$build" LIBRARY_PATH="$build" LDFLAGS=-Wl,--no-as-needed CFLAGS='-O0 -w' CXXFLAGS='-O0 -w' PIP_NO_CACHE_DIR=1
PIP_SECONDS=1500
sed -n '/^pycuda==/,/[^\\]$/p' "$pins/requirements.txt" >"$build/pycuda.txt"
"$folder/bin/pip" download --quiet --no-input --disable-pip-version-check --require-hashes --no-deps \
	--no-build-isolation --no-binary pycuda --dest "$build" -r "$build/pycuda.txt" >"$log" 2>&1 ||
	skip "pip cannot download PyCUDA's source: $(tail -n 1 "$log")"
tar -xzf "$build"/pycuda-*.tar.gz -C "$build" --strip-components=1 --wildcards 'pycuda-*/test/test_driver.py'
