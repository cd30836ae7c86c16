"""`jupyter sluice install`: a kernelspec whose kernels are workloads."""

import argparse
import shutil
import sys
import tempfile

from jupyter_client.kernelspec import KernelSpecManager

from . import __version__, command

PROVISIONER = "sluice-provisioner"


def metadata(**config):
    """What a kernelspec's metadata needs; empty values are left out, so the provisioner's defaults hold."""
    return {"kernel_provisioner": {"provisioner_name": PROVISIONER, "config": {key: value for key, value in config.items() if value}}}


def install(name, display_name, where, config):
    """Writes the kernelspec; returns its folder. where: arguments of KernelSpecManager.install_kernel_spec."""
    # ipykernel is needed by the kernel alone, and may be absent where only the provisioner is used.
    from ipykernel.kernelspec import write_kernel_spec

    with tempfile.TemporaryDirectory() as folder:
        source = write_kernel_spec(f"{folder}/kernel", overrides={"display_name": display_name, "metadata": {"debugger": True, **metadata(**config)}})
        return KernelSpecManager().install_kernel_spec(source, kernel_name=name, **where)


def _parser():
    parser = argparse.ArgumentParser(prog="jupyter sluice", description="Notebooks that share GPUs with Sluice.")
    parser.add_argument("--version", action="version", version=__version__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    add = verbs.add_parser("install", help="write a kernelspec for this Python whose kernels are workloads of Sluice")
    add.add_argument("--name", default="python3-sluice", help="name of the kernelspec (%(default)s)")
    add.add_argument("--display-name", default="Python 3 (GPU, Sluice)", help="its name in the launcher (%(default)s)")
    add.add_argument("--request", default="", metavar="AMOUNT", help="GPU memory guaranteed to each kernel: 4GiB, or 0.25 of a GPU")
    add.add_argument("--limit", default="", metavar="AMOUNT", help="the most that each kernel may hold")
    add.add_argument("--detach-after", default="", metavar="TIME", help="idle time after which a kernel leaves the GPU until its next use of it: 15m")
    add.add_argument("--wait-for-room", type=float, default=0, metavar="SECONDS", help="time that a start waits for room, instead of failing at once")
    add.add_argument("--command", default="", metavar="PATH", help="path of sluice, if it is not in PATH")
    places = add.add_mutually_exclusive_group()
    places.add_argument("--user", action="store_true", help="for this user (default: for this Python environment)")
    places.add_argument("--prefix", help="for the environment in this folder")
    return parser


def main(words=None):
    options = _parser().parse_args(words)
    found = shutil.which(options.command or "sluice")
    if not found:
        what = f"{options.command} cannot be executed" if options.command else "there is no sluice in PATH"
        print(f"jupyter sluice: warning: {what}; kernels do not start until Sluice is installed or --command names it", file=sys.stderr)
    where = {"user": True} if options.user else {"prefix": options.prefix or sys.prefix}
    config = {"request": options.request, "limit": options.limit, "detach_after": options.detach_after,
        "wait_for_room": options.wait_for_room, "command": options.command}
    try:
        folder = install(options.name, options.display_name, where, config)
    except ImportError:
        sys.exit(f"jupyter sluice: {sys.executable} has no ipykernel; install it")
    except (OSError, ValueError) as error:
        sys.exit(f"jupyter sluice: cannot write the kernelspec: {error}; --user and --prefix choose another place")
    print(f"{options.display_name}: {folder}")
    try:
        command.run("gpus", "--json", command=options.command or None)
    except command.SluiceError as error:
        if found:
            print(f"jupyter sluice: warning: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
