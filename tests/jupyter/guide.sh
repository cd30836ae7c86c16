#!/bin/sh
# docs/guide/notebooks.md as a user follows it: its commands are typed into a Python environment that has Jupyter and nothing of Sluice, and
# its cells are run in three notebooks of the kernel that they installed; guide.py says what is seen.
export BOX="--gpus 1 --memory 512MiB"
export LIMIT=540
. "$(dirname "$0")/../system/lib.sh"
software_only "the scenes need a GPU of 512 MiB"
. "$(dirname "$0")/lib.sh"
# An environment of its own in front of the one with Jupyter, which stays as it is. The network is left alone.
"$PYTHON" -m venv --without-pip "$T/env"
site=$("$T/env/bin/python" -c 'import site; print(site.getsitepackages()[0])')
"$PYTHON" -c 'import site; print(site.getsitepackages()[0])' >"$site/jupyter.pth"
printf '#!/bin/sh\nexec %s/bin/python -m pip "$@"\n' "$T/env" >"$T/env/bin/pip"
chmod +x "$T/env/bin/pip"
export PIP_NO_BUILD_ISOLATION=false PYTHONPATH="$site:$HERE" JUPYTER_PATH="$T/env/share/jupyter" JUPYTER_CONFIG_PATH="$T/env/etc/jupyter"
export PATH="$T/env/bin:$PATH" GUIDE="$HERE/../../docs/guide/notebooks.md"
awk '/^```/ { inside = $0 == "```sh"; next } inside' "$GUIDE" | sed "s|/path/to/sluice/jupyter|$T/source|" >"$T/commands"
check "commands" "$(wc -l <"$T/commands")" = 3
# The server is started by the scenes.
check_file "the last one" "$T/commands" '^jupyter lab$'
sed '$d' "$T/commands" >"$T/typed"
sh -e "$T/typed" >"$T/said" 2>&1
ended=$?
check "status: $(tail -n 3 "$T/said")" $ended = 0
"$T/env/bin/python" "$HERE/guide.py"
status=$?
logs $status
check "what the scenes found" $status = 0
finish
