"""The extension of the Jupyter server: what the status bar asks about a kernel.

GET /sluice/api/kernels/ID answers {"managed": false} for a kernel that is no workload, and otherwise
{"managed": true, "name", "state", "gpu_bytes", "host_bytes", "request_bytes", "limit_bytes", "why": [sentences]}, or
{"managed": true, "name", "state": "unknown", "why": [what is wrong]} if the daemon does not answer.
POST /sluice/api/kernels/ID/resume brings a parked workload back, and answers {}.

All browsers together cost two `sluice ps` a second, and two `sluice why` for each workload that is shown and not running.
"""

import asyncio
import time

from jupyter_server.auth import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from . import command
from .provisioner import SluiceProvisioner

FRESH_SECONDS = 0.5


class Asked:
    """Answers of `sluice`, each asked at most once in FRESH_SECONDS."""

    def __init__(self):
        self._answers = {}

    async def get(self, key, call, *words, **how):
        """What call(*words, **how) gave; raises what it raised."""
        at, task = self._answers.get(key, (0, None))
        if not task or (task.done() and time.monotonic() - at > FRESH_SECONDS):
            task = asyncio.ensure_future(asyncio.to_thread(call, *words, **how))
            self._answers = {other: kept for other, kept in self._answers.items() if not kept[1].done() or time.monotonic() - kept[0] <= FRESH_SECONDS}
            self._answers[key] = (time.monotonic(), task)
        return await asyncio.shield(task)


async def answer(asked, provisioner):
    """The document above, for one kernel's provisioner."""
    if not isinstance(provisioner, SluiceProvisioner) or not provisioner.workload:
        return {"managed": False}
    name, tool = provisioner.workload, provisioner.command
    try:
        rows = (await asked.get(("ps", tool), command.workloads, command=tool)).get(name)
        if not rows:
            return {"managed": True, "name": name, "state": "ended", "why": [f"{name} is no workload any more; restart the kernel"]}
        now = {"managed": True, "why": [], **command.summary(rows)}
        if now["state"] != "running":
            said = await asked.get(("why", tool, name), command.run, "why", name, command=tool)
            now["why"] = said.partition("Before:")[0].strip().splitlines()
        return now
    except command.SluiceError as error:
        return {"managed": True, "name": name, "state": "unknown", "why": [str(error)]}


class _Handler(APIHandler):
    auth_resource = "kernels"

    def provisioner(self, kernel_id):
        try:
            return self.kernel_manager.get_kernel(kernel_id).provisioner
        except KeyError:
            raise web.HTTPError(404, f"there is no kernel {kernel_id}") from None


class KernelHandler(_Handler):
    def initialize(self, asked):
        self.asked = asked

    @web.authenticated
    @authorized
    async def get(self, kernel_id):
        self.finish(await answer(self.asked, self.provisioner(kernel_id)))


class ResumeHandler(_Handler):
    @web.authenticated
    @authorized
    async def post(self, kernel_id):
        provisioner = self.provisioner(kernel_id)
        if not isinstance(provisioner, SluiceProvisioner):
            raise web.HTTPError(400, f"kernel {kernel_id} is no workload of Sluice")
        try:
            await asyncio.to_thread(command.run, "resume", provisioner.workload, "--no-wait", command=provisioner.command)
        except command.SluiceError as error:
            raise web.HTTPError(409, str(error), reason=None) from None
        self.finish({})


def _load_jupyter_server_extension(app):
    base = url_path_join(app.web_app.settings["base_url"], "sluice", "api", "kernels", "(?P<kernel_id>[0-9a-f-]+)")
    app.web_app.add_handlers(".*$", [(base, KernelHandler, {"asked": Asked()}), (url_path_join(base, "resume"), ResumeHandler)])
