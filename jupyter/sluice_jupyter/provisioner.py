"""The provisioner of kernels that are workloads of Sluice.

A kernel is started as `sluice run ... -- KERNEL`, which becomes the kernel in the same process. So the
process, its signals and its end are the kernel's, and only two things are left to do here: to wait until the
daemon has admitted the workload, with its refusal as the error of the start, and to leave no process of the
kernel behind.
"""

import asyncio
import json
import os
import re
import signal
import sys
import threading

from jupyter_client.provisioning import LocalProvisioner
from traitlets import CFloat, CInt, CUnicode, List, default

from . import command

# Of a name, what `sluice run --name` takes.
_NAME_MOST = 63
_NAME_TRIES = 20


class StartError(RuntimeError):
    """The workload was refused, in the words of `sluice run`."""


class _Admission:
    """What `sluice run --json` writes to standard error before it becomes the kernel.

    Later bytes are the kernel's own, and go on to standard error of this process: for as long as the kernel lives, on a thread.
    """

    def __init__(self):
        self._read, self.write = os.pipe()
        self._ended = threading.Event()
        self._text = b""
        self.answer = None
        threading.Thread(target=self._follow, name="sluice-kernel-stderr", daemon=True).start()

    def _follow(self):
        with os.fdopen(self._read, "rb", buffering=0) as file:
            while data := file.read(65536):
                if self.answer is None:
                    data = self._take(data)
                if data:
                    os.write(2, data)
        self._ended.set()

    def _take(self, data):
        """Looks for the admission; returns what follows it."""
        self._text += data
        done, newline, rest = self._text.rpartition(b"\n")
        for line in done.split(b"\n") if newline else ():
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if isinstance(said, dict) and said.get("ok") is True:
                self.answer = said
                return rest
        return b""

    def ended(self):
        """The process has closed its standard error."""
        return self._ended.is_set()

    def last(self):
        """The last that was said, as a dict with `error`: the refusal, or why the workload waits."""
        text = self._text.decode(errors="replace").strip()
        for line in reversed(text.splitlines()):
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if isinstance(said, dict):
                return {"error": said.get("text", ""), **said}
        return {"error": text or "`sluice run` ended and said nothing"}


def _from_environment(name, otherwise):
    """The default of the trait `name`."""
    return default(name)(lambda self: os.environ.get(f"SLUICE_JUPYTER_{name.upper()}", otherwise))


class SluiceProvisioner(LocalProvisioner):
    """Starts the kernel as a workload of Sluice.

    An option comes from `config` in the metadata of the kernelspec, else from the server's configuration
    (`c.SluiceProvisioner.limit = "8GiB"`), else from the environment (SLUICE_JUPYTER_LIMIT), else from `sluice run`.
    """

    command = CUnicode(config=True, help="Path of `sluice` (SLUICE_JUPYTER_COMMAND).")
    request = CUnicode(config=True, help="GPU memory that is guaranteed to each kernel: 4GiB, or 0.25 of a GPU (SLUICE_JUPYTER_REQUEST).")
    limit = CUnicode(config=True, help="The most that each kernel may hold (SLUICE_JUPYTER_LIMIT).")
    name = CUnicode(config=True, help="Name of the workload; default: that of the notebook (SLUICE_JUPYTER_NAME is set in the kernel).")
    project = CUnicode(config=True, help="Project of Sluice that kernels count for (SLUICE_JUPYTER_PROJECT).")
    gpus = CInt(1, config=True, help="Number of GPUs of each kernel (SLUICE_JUPYTER_GPUS).")
    detach_after = CUnicode(config=True, help="Idle time after which a kernel leaves the GPU until its next use of it: 15m; 0: never (SLUICE_JUPYTER_DETACH_AFTER).")
    wait_for_room = CFloat(0, config=True, help="Seconds that a start waits for room, instead of failing at once (SLUICE_JUPYTER_WAIT_FOR_ROOM).")
    options = List(CUnicode(), config=True, help="Further options of `sluice run`, a word each (SLUICE_JUPYTER_OPTIONS, with blanks between them).")

    _ours = ("command", "request", "limit", "name", "project", "gpus", "detach_after", "wait_for_room", "options")

    def __init__(self, **kwargs):
        known = set(self.trait_names())
        unknown = sorted(set(kwargs) - known)
        if unknown:
            raise StartError(f"kernel_provisioner has no option {', '.join(unknown)} in the kernelspec; the options are {', '.join(self._ours)}")
        super().__init__(**kwargs)

    _command = _from_environment("command", "sluice")
    _request = _from_environment("request", "")
    _limit = _from_environment("limit", "")
    _project = _from_environment("project", "")
    _gpus = _from_environment("gpus", 1)
    _detach_after = _from_environment("detach_after", "")
    _wait_for_room = _from_environment("wait_for_room", 0)

    @default("options")
    def _options(self):
        return os.environ.get("SLUICE_JUPYTER_OPTIONS", "").split()

    # Name and ID of the workload, once it is admitted.
    workload = ""
    _id = None

    def words(self, name, kernel):
        """The command line that starts the kernel's command as the workload NAME."""
        words = [self.command, "run", "--json", "--name", name]
        for option in ("request", "limit", "project"):
            if getattr(self, option):
                words += [f"--{option}", getattr(self, option)]
        if self.gpus != 1:
            words += ["--gpus", str(self.gpus)]
        if self.detach_after:
            words += ["--detach-after", self.detach_after]
        if self.wait_for_room > 0:
            words.append("--wait")
        return [*words, *self.options, "--", *kernel]

    async def launch_kernel(self, cmd, **kwargs):
        kernel = list(cmd)
        # The magic, if the kernel is one of this Python, which has it for certain.
        if "ipykernel_launcher" in kernel and os.path.realpath(kernel[0]) == os.path.realpath(sys.executable):
            kernel.append("--InteractiveShellApp.extra_extensions=sluice_jupyter")
        base = self._base_name(kwargs.get("env") or {})
        for number in range(1, _NAME_TRIES + 1):
            # That of a kernel that ended just now may still be in use, and another notebook may have the name.
            name = base if number == 1 else f"{base[:_NAME_MOST - 4]}-{number}"
            refusal = await self._start(name, kernel, kwargs)
            if refusal is None:
                return self.connection_info
            if refusal.get("reason") != "DUPLICATE":
                break
        self._forget()
        # The hint is for a command line.
        hint = " (`wait_for_room` of the kernel's provisioner waits for room)" if "--wait" in refusal.get("hint", "") else ""
        raise StartError(f"Sluice does not start this kernel: {refusal['error']}{hint}")

    def _forget(self):
        """After a refusal. Jupyter keeps a kernel that did not start among those that start, and then fails to end the others with the server."""
        self.process = self.pid = self.pgid = None
        getattr(getattr(self.parent, "parent", None), "_pending_kernels", {}).pop(self.kernel_id, None)

    def _base_name(self, environment):
        notebook = os.path.splitext(os.path.basename(environment.get("JPY_SESSION_NAME") or ""))[0]
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.name or notebook or f"kernel-{self.kernel_id[:8]}").strip("-.")
        # Plain digits would be an ID.
        return f"nb-{name}"[:_NAME_MOST] if not name or name.isdigit() else name[:_NAME_MOST]

    async def _start(self, name, kernel, kwargs):
        """None once the workload NAME is admitted, else the refusal as a dict with `error`."""
        admission = _Admission()
        environment = {**(kwargs.get("env") or os.environ), command.NAME: name, command.COMMAND: self.command}
        try:
            await super().launch_kernel(self.words(name, kernel), **{**kwargs, "env": environment, "stderr": admission.write})
        except OSError as error:
            self._forget()
            raise StartError(f"cannot start {self.command}: {error.strerror}; install Sluice, or set the provisioner's `command` to the path of sluice") from None
        finally:
            os.close(admission.write)
        # Without a wait, `sluice run` has a time limit of its own.
        left = self.wait_for_room if self.wait_for_room > 0 else float("inf")
        while admission.answer is None and left > 0 and not admission.ended():
            await asyncio.sleep(0.02)
            left -= 0.02
        if admission.answer is not None:
            self.workload, self._id = name, admission.answer["workload"]
            if admission.answer.get("warning"):
                self.log.warning("workload %s: %s", name, admission.answer["warning"])
            self.log.info("kernel %s is workload %s of Sluice", self.kernel_id, name)
            return None
        waited = not admission.ended()
        if waited:
            self.process.kill()
        await self.wait()
        refusal = admission.last()
        if waited:
            refusal["error"] = f"no room within {self.wait_for_room:g} s (wait_for_room): {refusal['error']}"
        return refusal

    async def poll(self):
        status = await super().poll()
        if status is not None:
            self._end_group()
        return status

    async def cleanup(self, restart=False):
        self._end_group()
        if self._id is not None:
            # Processes of the kernel that left its group are still of the workload.
            await asyncio.to_thread(self._stop, str(self._id))
            self._id = None
        await super().cleanup(restart)

    def _end_group(self):
        """Ends what a kernel that has ended left running: workers, commands of its cells."""
        if self.pgid and self.pgid == self.pid and self.pid != os.getpid():
            try:
                os.killpg(self.pgid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass

    def _stop(self, workload):
        try:
            command.run("stop", workload, "--now", command=self.command, seconds=5)
        except command.SluiceError as error:
            self.log.debug("workload %s: %s", workload, error)
