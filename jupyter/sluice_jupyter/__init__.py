"""Notebooks that share GPUs with Sluice.

The package has four parts, each used by itself:

- provisioner: starts a kernel as a workload, by `sluice run`.
- magic: `%sluice` in a notebook.
- server: what the status bar of JupyterLab asks.
- install: `jupyter sluice install` writes a kernelspec for the provisioner.

None of them knows the daemon: each asks the command line (`sluice ... --json`), by command.py.
"""

__version__ = "0.1.0"


def load_ipython_extension(shell):
    """Of IPython: `%load_ext sluice_jupyter`."""
    from .magic import SluiceMagics

    shell.register_magics(SluiceMagics(shell))


def _jupyter_server_extension_points():
    """Of the Jupyter server."""
    return [{"module": "sluice_jupyter.server"}]


def _jupyter_labextension_paths():
    """Of `jupyter labextension develop`."""
    return [{"src": "../labextension", "dest": "sluice-jupyter"}]
