#!/bin/sh
# The package sluice-jupyter: built as a wheel with all its files, compiled, and its parts alone (unit.py).
export LIMIT=120
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/lib.sh"
export TMPDIR="$T"
"$PYTHON" -m compileall -q "$T/source/sluice_jupyter"
check "it compiles" $? = 0
"$PYTHON" -m zipfile -l "$T"/sluice_jupyter-*.whl >"$T/files"
for file in sluice_jupyter/provisioner.py share/jupyter/labextensions/sluice-jupyter/static/remoteEntry.js licenses/LICENSE \
	share/jupyter/labextensions/sluice-jupyter/package.json etc/jupyter/jupyter_server_config.d/sluice_jupyter.json; do
	check_file "the wheel has $file" "$T/files" "$file"
done
"$PYTHON" -c 'from importlib.metadata import entry_points
print(entry_points(group="jupyter_client.kernel_provisioners", name="sluice-provisioner")["sluice-provisioner"].load().__name__)' >"$T/entry" 2>&1
check_file "Jupyter finds the provisioner" "$T/entry" '^SluiceProvisioner$'
"$PYTHON" "$HERE/unit.py" >"$T/unit" 2>&1
check "its parts" $? = 0
[ "$FAILED" = 0 ] || cat "$T/unit"
check_file "all of them ran" "$T/unit" '^Ran 1[5-9] tests'
finish
