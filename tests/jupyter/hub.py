"""A hub, two users, and what their kernels are given."""

import socket

from nb import *

TOKEN = uuid.uuid4().hex
CONFIG = """
import os, sys
load_subconfig(os.environ["HUB_EXAMPLE"])
c.JupyterHub.bind_url, c.JupyterHub.hub_bind_url = "http://127.0.0.1:{port}", "http://127.0.0.1:{hub}"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/hub-cookie"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{folder}/homes/{{username}}"
c.Spawner.args = ["--allow-root"]
c.Spawner.start_timeout = c.Spawner.http_timeout = 240
c.Spawner.env_keep.extend([name for name in os.environ if name.startswith(("JUPYTER_", "NB_", "SLUICE_", "CLIENT_", "LD_", "PYTHON"))])
c.ConfigurableHTTPProxy.command = [os.path.dirname(sys.executable) + "/configurable-http-proxy"]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.load_groups = {{"research": {{"users": ["rita"]}}, "students": {{"users": ["sam"]}}}}
c.JupyterHub.services = [{{"name": "test", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [{{"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:servers", "access:servers"]}}]
"""


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class User(Server):
    """The server of a user, as Notebook takes it: through the hub's proxy."""

    def __init__(self, hub, name):
        self.address, self.token, self.name = f"{hub}/user/{name}", TOKEN, name
        self._hub = hub
        hub_api = Hub(hub)
        check(f"{name}: is there", hub_api.ask(f"/users/{name}")[0], 200)
        check(f"{name}: the server starts", hub_api.ask(f"/users/{name}/server", "POST", {})[0] in (201, 202))
        becomes(f"{name}: it is ready", lambda: (hub_api.ask(f"/users/{name}")[1] or {}).get("server"), f"/user/{name}/", 60)

    def stop(self):
        check(f"{self.name}: the server stops", Hub(self._hub).ask(f"/users/{self.name}/server", "DELETE")[0] in (202, 204))


class Hub(Server):
    def __init__(self, hub):
        self.address, self.token = f"{hub}/hub/api", TOKEN

    def up(self):
        try:
            return self.ask("/")[0] == 200
        except OSError:
            return False


def main():
    daemon = Daemon("host_memory: 1GiB", "idle_grace: 100ms")
    subprocess.run([sys.executable, "-m", "sluice_jupyter", "install", "--prefix", os.environ["NB_PREFIX"]], check=True)
    port, hub_port, proxy = free_port(), free_port(), free_port()
    with open(f"{FOLDER}/hub.py", "w", encoding="utf-8") as file:
        file.write(CONFIG.format(port=port, hub=hub_port, proxy=proxy, folder=FOLDER, token=TOKEN))
    for name in ("rita", "sam"):
        os.makedirs(f"{FOLDER}/homes/{name}")
    with open(f"{FOLDER}/hub.log", "w", encoding="utf-8") as log:
        hub = subprocess.Popen([sys.executable, "-m", "jupyterhub", "--config", f"{FOLDER}/hub.py"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=FOLDER)
    address = f"http://127.0.0.1:{port}"
    check("the hub answers", until(50, Hub(address).up))
    users = [User(address, name) for name in ("rita", "sam")]
    books = [Notebook(user, f"{user.name}.ipynb") for user in users]
    check("each has a kernel", [book.status for book in books], [201, 201])
    found = {name: (row["request_bytes"] // MIB, row["limit_bytes"] // MIB, row["detach_after_ms"]) for name, row in workloads().items()}
    check("with the amounts of the group", found, {"rita": (44, 144, 900000), "sam": (0, 44, 900000)})
    check("the daemon keeps a student's limit", books[1].cell("from cu import *; start(); print(result('cuMemAlloc', 60 << 20), must('cuMemGetInfo')[1] >> 20)")["out"],
        "CUDA_ERROR_OUT_OF_MEMORY 44\n")
    check("the status bar's question goes through the proxy", books[0].state(), "reserved")
    for user in users:
        user.stop()
    becomes("no workload is left", workloads, {})
    hub.send_signal(signal.SIGTERM)
    hub.wait(60 * SLOWER)
    daemon.kill()
    finish()


main()
