"""What the tests of notebooks have in common: checks, the daemon, a Jupyter server and its notebooks over HTTP and web sockets.

The environment is that of lib.sh: NB_BUILD, NB_FOLDER and the variables of Jupyter.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

import websocket

BUILD = os.environ["NB_BUILD"]
FOLDER = os.environ["NB_FOLDER"]
SLOWER = int(os.environ.get("SLUICE_TEST_SLOWER", "1"))
# What is over in a moment takes many on a machine that tests run beside: only a failure is waited for so long.
PATIENCE = 4
MIB = 1 << 20

_checks = _failures = 0
_began = time.monotonic()


def check(what, value, wanted=True):
    """Both are printed when they differ."""
    global _checks, _failures
    _checks += 1
    if value == wanted:
        print(f"  ok: {what} ({time.monotonic() - _began:.0f} s)", flush=True)
        return
    _failures += 1
    print(f"  FAILED: {what}: {value!r} is not {wanted!r}", flush=True)


def check_in(what, part, text):
    check(what + ("" if part in str(text) else f" ({part!r} is not in {text!r})"), part in str(text))


def until(seconds, ask):
    """The first answer of ask that is true, or its last one."""
    end = time.monotonic() + seconds * PATIENCE * SLOWER
    while True:
        answer = ask()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(0.05)


def becomes(what, ask, wanted, seconds=20):
    """As check, of what is about to come."""
    last = None

    def same():
        nonlocal last
        last = ask()
        return last == wanted

    until(seconds, same)
    check(what, last, wanted)


def finish():
    print(f"  {_checks} checks, {_failures} failed", flush=True)
    sys.exit(1 if _failures or not _checks else 0)


def sluice(*words):
    done = subprocess.run([f"{BUILD}/sluice", *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def workloads():
    """Rows of `sluice ps`, by name."""
    return {row["name"]: row for row in json.loads(sluice("ps", "--json") or "[]")}


def used_bytes():
    """Of GPU 0, as the driver says."""
    for line in subprocess.run([f"{BUILD}/tests/programs/nvml-view"], capture_output=True, text=True, check=False).stdout.splitlines():
        row = json.loads(line)
        if row.get("what") == "memory":
            return row["used"]
    return None


def alive(pid):
    """It runs, and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Daemon:
    def __init__(self, *config):
        self._config = f"{FOLDER}/config"
        with open(self._config, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in config)
        self.start()

    def start(self):
        self._log = open(f"{FOLDER}/daemon.log", "a", encoding="utf-8")
        self.process = subprocess.Popen([f"{BUILD}/sluiced", "--config", self._config, "--socket", os.environ["SLUICE_SOCKET"],
            "--state", f"{FOLDER}/state"], stdout=self._log, stderr=self._log)
        until(20, lambda: sluice("gpus", "--json"))

    def kill(self):
        self.process.kill()
        self.process.wait()


class Server:
    """A Jupyter server on a port of its own choice, in a folder of its own."""

    def __init__(self, *options, app="jupyter_server"):
        self.folder = f"{FOLDER}/notebooks"
        self.token = uuid.uuid4().hex
        os.makedirs(self.folder, exist_ok=True)
        self._log = open(f"{FOLDER}/jupyter.log", "a", encoding="utf-8")
        self.process = subprocess.Popen([sys.executable, "-m", app, "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0",
            f"--IdentityProvider.token={self.token}", "--ServerApp.open_browser=False", "--ServerApp.allow_root=True",
            f"--ServerApp.root_dir={self.folder}", *options],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, cwd=self.folder)
        info = f"{os.environ['JUPYTER_RUNTIME_DIR']}/jpserver-{self.process.pid}.json"
        check("the server answers", until(50, lambda: self._answers(info)))

    def _answers(self, info):
        try:
            with open(info, encoding="utf-8") as file:
                self.address = json.load(file)["url"].rstrip("/")
            return self.ask("/api/status")[0] == 200
        except (OSError, ValueError):
            return False

    def ask(self, path, method="GET", body=None):
        """(status, parsed answer)."""
        request = urllib.request.Request(self.address + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120 * SLOWER) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            text = error.read()
            try:
                return error.code, json.loads(text)
            except ValueError:
                return error.code, text.decode(errors="replace")

    def kernels(self):
        return self.ask("/api/kernels")[1]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60 * SLOWER)


class Notebook:
    """A session, as JupyterLab opens one, and its cells."""

    def __init__(self, server, path, kernel="python3-sluice"):
        self.server, self.path = server, path
        self.status, self.session = server.ask("/api/sessions", "POST",
            {"path": path, "name": path, "type": "notebook", "kernel": {"name": kernel}})
        self.kernel = self.session["kernel"]["id"] if self.status == 201 else None
        self._socket = None
        if self.kernel:
            self._connect()

    def _connect(self):
        self._socket = websocket.create_connection(f"{self.server.address.replace('http', 'ws', 1)}/api/kernels/{self.kernel}/channels",
            header=[f"Authorization: token {self.server.token}"], timeout=120 * SLOWER)

    def send(self, code):
        """Begins a cell; result() waits for it."""
        self._message = uuid.uuid4().hex
        self._socket.send(json.dumps({"channel": "shell", "buffers": [], "parent_header": {}, "metadata": {},
            "header": {"msg_id": self._message, "msg_type": "execute_request", "session": "test", "username": "", "version": "5.3", "date": ""},
            "content": {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False, "stop_on_error": True}}))

    def result(self):
        """{"out", "err", "error"} of the last cell, as texts."""
        said = {"out": "", "err": "", "error": ""}
        idle = replied = False
        while not (idle and replied):
            message = json.loads(self._socket.recv())
            content, kind = message["content"], message["header"]["msg_type"]
            if message["parent_header"].get("msg_id") != self._message:
                continue
            if kind == "stream":
                said["out" if content["name"] == "stdout" else "err"] += content["text"]
            elif kind == "execute_result":
                said["out"] += content["data"]["text/plain"]
            elif kind == "error":
                said["error"] = f"{content['ename']}: {content['evalue']}"
            idle |= kind == "status" and content["execution_state"] == "idle"
            replied |= kind == "execute_reply"
        return said

    def cell(self, code):
        self.send(code)
        return self.result()

    def shown(self):
        """What the status bar asks."""
        return self.server.ask(f"/sluice/api/kernels/{self.kernel}")[1]

    def state(self):
        return self.shown().get("state")

    def pid(self):
        return int(self.cell("import os; print(os.getpid())")["out"])

    def act(self, what):
        return self.server.ask(f"/api/kernels/{self.kernel}/{what}", "POST", {})

    def end(self):
        self._socket.close()
        return self.server.ask(f"/api/sessions/{self.session['id']}", "DELETE")[0]
