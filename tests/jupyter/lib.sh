#!/bin/sh
# lib - what the tests of notebooks share; source it after tests/system/lib.sh.
#
# The environment is that of tools/clients-venv --set jupyter, and the package, built here as a wheel, lies in front of it
# in $T/site. Everything of Jupyter lies in $T. $PYTHON is the interpreter.
# shellcheck disable=SC2034 # some variables are for the tests
HERE=$(cd "$(dirname "$0")" && pwd)
venv=$("$HERE/../../tools/clients-venv" --set jupyter 2>"$T/why") || skip "$(tail -n 1 "$T/why")"
PYTHON="$venv/bin/python"
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1
export HOME="$T/home" IPYTHONDIR="$T/ipython" JUPYTER_DATA_DIR="$T/data" JUPYTER_RUNTIME_DIR="$T/runtime" JUPYTER_CONFIG_DIR="$T/jupyter"
mkdir -p "$HOME" "$JUPYTER_RUNTIME_DIR"
# A copy: a build leaves nothing in the tree.
cp -rL "$HERE/../../jupyter" "$T/source"
"$PYTHON" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$T" "$T/source" >"$T/wheel" 2>&1 &&
	"$PYTHON" -m pip install --quiet --no-deps --target "$T/site" "$T"/sluice_jupyter-*.whl >>"$T/wheel" 2>&1 ||
	fail "the package cannot be built: $(cat "$T/wheel")"
export NB_PREFIX="$T/prefix" PYTHONPATH="$T/site:$HERE:$HERE/../clients" JUPYTER_PATH="$T/site/share/jupyter:$T/prefix/share/jupyter" JUPYTER_CONFIG_PATH="$T/site/etc/jupyter"
export PATH="$B:$venv/bin:$PATH" CLIENT_IMAGE="$P/prog-kernels.so" NB_BUILD="$B" NB_FOLDER="$T"
# In the reply of a failure the last lines of the server say most.
logs() {
	[ "$1" = 0 ] && return
	tail -n 30 "$T/jupyter.log" "$T/daemon.log" 2>/dev/null | cut -c 1-300 | sed 's/^/    /'
}
