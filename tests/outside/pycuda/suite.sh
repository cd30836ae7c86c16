# PyCUDA's tests of the driver API; most others compile CUDA C.
mkdir "$T/tests"
cp "$venv/build/test/test_driver.py" "$T/tests"
suite() { pytest_suite "$T/tests" "$@"; }
