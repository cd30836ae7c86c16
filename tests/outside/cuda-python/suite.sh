# The tests that NVIDIA's bindings for CUDA 12 install beside themselves; cudart in them is written in terms of the
# driver API and needs no runtime library.
cp -r "$venv"/lib/python3*/site-packages/cuda/tests "$T/tests"
suite() { pytest_suite "$T/tests" "$@"; }
