# The tests of numba-cuda's driver layer. They start processes that import them, and pytest would import them by
# names under which those processes do not find them: files here do it by the right one.
tests=$(echo "$venv"/lib/python3*/site-packages/numba_cuda/numba/cuda/tests/cudadrv)
mkdir "$T/tests"
for file in "$tests"/test_*.py; do
	name=$(basename "$file" .py)
	echo "from numba.cuda.tests.cudadrv.$name import *" >"$T/tests/$name.py"
done
suite() { pytest_suite "$T/tests" "$@"; }
