# gpustat takes its version from git otherwise; nothing may be fetched that is not pinned.
GPUSTAT_VERSION=$(sed -n 's/^gpustat==\([^ ]*\).*/\1/p' "$pins/requirements.txt")
export GPUSTAT_VERSION
