"""`python -m sluice_jupyter install`."""

from .install import main

main()
