"""`%sluice`: the workload of a notebook's own kernel."""

import shlex
import sys

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from . import command

USAGE = "%sluice [park | resume | why | set --limit 8GiB ...]"


@magics_class
class SluiceMagics(Magics):
    """Holds whether the notebook parked itself: then the next cell brings it back."""

    _parked = False

    def __init__(self, shell):
        super().__init__(shell)
        shell.events.register("pre_run_cell", self._before_cell)

    @line_magic
    def sluice(self, line):
        """%sluice: state and memory of this notebook on the GPU.

        %sluice park: leave the GPU now; the next cell comes back to it.
        %sluice resume: come back now.
        %sluice why: what is in the way.
        %sluice set --limit 8GiB: as `sluice set` does.
        """
        try:
            verb, *words = shlex.split(line) or [""]
            act = {"": self._tell, "park": self._park, "resume": self._resume, "why": self._why, "set": self._set}.get(verb)
            if act is None or (words and verb != "set"):
                raise UsageError(f"%sluice {line.strip()}: the forms are {USAGE}")
            print(act(command.own_name(), words).strip())
        except (command.SluiceError, ValueError) as error:
            raise UsageError(f"%sluice: {error}") from None

    def _tell(self, name, words):
        rows = command.workloads().get(name)
        if not rows:
            raise command.SluiceError(f"{name} is no workload any more; restart the kernel")
        now = command.summary(rows)
        host = f", {command.amount(now['host_bytes'])} on the host" if now["host_bytes"] else ""
        request = f", request {command.amount(now['request_bytes'])}" if now["request_bytes"] else ""
        return f"{name}: {now['state']}, {command.amount(now['gpu_bytes'])} of {command.amount(now['limit_bytes'])} on the GPU{host}{request}"

    def _park(self, name, words):
        said = command.run("park", name, seconds=command.MOVE_SECONDS)
        self._parked = True
        return said.strip() + "; the next cell comes back to the GPU"

    def _resume(self, name, words):
        said = command.run("resume", name, seconds=command.MOVE_SECONDS)
        self._parked = False
        return said

    def _why(self, name, words):
        return command.run("why", name)

    def _set(self, name, words):
        if not words:
            raise command.SluiceError("set needs an option, such as --limit 8GiB")
        return command.run("set", name, *words)

    def _before_cell(self, info):
        """What the notebook parked comes back with the next cell, unless that only asks."""
        lines = [line.strip() for line in (info.raw_cell or "").splitlines()]
        if not self._parked or all(not line or line.startswith(("%sluice", "#")) for line in lines):
            return
        try:
            # The cell itself waits, at its first use of the GPU.
            command.run("resume", command.own_name(), "--no-wait")
            self._parked = False
        except command.SluiceError as error:
            print(f"this notebook is still parked: {error}", file=sys.stderr)
