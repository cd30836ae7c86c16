# Read by tools/clients-venv: nothing that the packages depend on is installed, for Halide reads image files with it; numpy
# is among the pins.
# shellcheck shell=sh
export PIP_NO_DEPS=1
