"""The parts of sluice-jupyter alone; `sluice` is a script that says what it is told to say."""

import asyncio
import json
import os
import stat
import sys
import tempfile
import unittest
from unittest import mock

from sluice_jupyter import __version__, command, server
from sluice_jupyter.install import metadata
from sluice_jupyter.provisioner import SluiceProvisioner, StartError, _Admission

ROW = {"workload": 1, "uid": os.geteuid(), "name": "a", "pid": 1, "state": "bound", "residency": "bound", "backing_bytes": 4096, "hidden_bytes": 100,
    "evicted_bytes": 96, "request_bytes": 7, "limit_bytes": 8192}


class Fake:
    """`sluice` in a folder of its own: writes out and err, ends with status, and appends its words to a file."""

    def __init__(self, out="", err="", status=0):
        # In the test's own folder, which the test removes.
        self.folder = tempfile.mkdtemp()
        self.path = f"{self.folder}/sluice"
        for name, text in (("out", out), ("err", err)):
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\ncd {self.folder}\necho "$@" >>words\ncat out\ncat err >&2\nexit {status}\n')
        os.chmod(self.path, stat.S_IRWXU)

    def words(self):
        with open(f"{self.folder}/words", encoding="utf-8") as file:
            return file.read().splitlines()


class Command(unittest.TestCase):
    def test_answers(self):
        fake = Fake(json.dumps([ROW, {**ROW, "gpu": 1}, {**ROW, "name": "b", "uid": ROW["uid"] + 1}, {**ROW, "name": "c", "workload": None}]))
        self.assertEqual({name: len(rows) for name, rows in command.workloads(command=fake.path).items()}, {"a": 2})
        self.assertEqual(fake.words(), ["ps --json"])

    def test_refusals(self):
        for err, text in (('{"ok": false, "error": "no room", "hint": "wait"}\n', "no room (wait)"), ("warning\n" '{"error": "old"}\n', "old"),
                ("sluice ps: no daemon\n", "sluice ps: no daemon"), ("", "sluice ps ended with status 69")):
            with self.assertRaises(command.SluiceError) as caught:
                command.ask("ps", command=Fake("", err, 69).path)
            self.assertEqual((str(caught.exception), caught.exception.status), (text, 69))

    def test_absent_and_silent(self):
        with self.assertRaisesRegex(command.SluiceError, "cannot start /nowhere: .*install Sluice"):
            command.run("ps", command="/nowhere")
        with self.assertRaisesRegex(command.SluiceError, "sluice 60 has not ended after 0.1 s"):
            command.run("60", command="/bin/sleep", seconds=0.1)

    def test_summary(self):
        both = command.summary([ROW, ROW])
        self.assertEqual(both, {"name": "a", "state": "running", "gpu_bytes": 8200, "host_bytes": 192, "request_bytes": 14, "limit_bytes": 16384})
        for state, residency, word in (("waiting", "bound", "waiting"), ("bound", "evicted", "waiting"), ("bound", "resuming", "waiting"),
                ("bound", "parked", "parked"), ("bound", "detached", "detached"), ("bound", "warm", "warm"), ("gone", "bound", "gone"),
                ("reserved", "reserved", "reserved")):
            self.assertEqual(command.summary([{**ROW, "state": state, "residency": residency}])["state"], word)

    def test_amounts(self):
        self.assertEqual([command.amount(count) for count in (0, 1 << 20, 3 << 29, (1 << 30) + 1, 5 << 40)],
            ["0 B", "1 MiB", "1.5 GiB", "1 GiB", "5 TiB"])

    def test_own_name(self):
        with mock.patch.dict(os.environ, {command.NAME: "mine"}):
            self.assertEqual(command.own_name(), "mine")
        fake = Fake(json.dumps([{**ROW, "pid": os.getppid()}, {**ROW, "name": "b", "pid": 1 << 30}]))
        with mock.patch.dict(os.environ, {"SLUICE_WORKLOAD": "token", command.COMMAND: fake.path}):
            self.assertEqual(command.own_name(), "a")
        with mock.patch.dict(os.environ, {command.COMMAND: fake.path}), self.assertRaisesRegex(command.SluiceError, "no workload of Sluice"):
            os.environ.pop("SLUICE_WORKLOAD", None)
            command.own_name()


class Provisioner(unittest.TestCase):
    def make(self, **config):
        return SluiceProvisioner(kernel_id="0123456789ab", **config)

    def test_words(self):
        self.assertEqual(self.make().words("n", ["k"]), ["sluice", "run", "--json", "--name", "n", "--", "k"])
        full = self.make(command="/s", request="4GiB", limit=0.5, project="p", gpus=2, detach_after="15m", wait_for_room=5, options=["--priority", 3])
        self.assertEqual(full.words("n", ["k", "-f"]), ["/s", "run", "--json", "--name", "n", "--request", "4GiB", "--limit", "0.5", "--project", "p",
            "--gpus", "2", "--detach-after", "15m", "--wait", "--priority", "3", "--", "k", "-f"])

    def test_environment(self):
        given = {"SLUICE_JUPYTER_COMMAND": "/e", "SLUICE_JUPYTER_REQUEST": "1GiB", "SLUICE_JUPYTER_LIMIT": "2GiB", "SLUICE_JUPYTER_PROJECT": "q",
            "SLUICE_JUPYTER_GPUS": "3", "SLUICE_JUPYTER_DETACH_AFTER": "1m", "SLUICE_JUPYTER_WAIT_FOR_ROOM": "9", "SLUICE_JUPYTER_OPTIONS": "--swap off"}
        with mock.patch.dict(os.environ, given):
            self.assertEqual(self.make().words("n", ["k"]), ["/e", "run", "--json", "--name", "n", "--request", "1GiB", "--limit", "2GiB", "--project", "q",
                "--gpus", "3", "--detach-after", "1m", "--wait", "--swap", "off", "--", "k"])
            self.assertEqual(self.make(limit="7GiB").limit, "7GiB")

    def test_unknown_option(self):
        with self.assertRaisesRegex(StartError, "no option requests in the kernelspec; the options are command, request"):
            self.make(requests="1GiB")

    def test_names(self):
        def name(path, **config):
            return self.make(**config)._base_name({"JPY_SESSION_NAME": path})

        self.assertEqual(name("data/My model (2).ipynb"), "My-model-2")
        self.assertEqual(name("2024.ipynb"), "nb-2024")
        self.assertEqual(name("数据.ipynb"), "nb-")
        self.assertEqual(name(""), "kernel-01234567")
        self.assertEqual(name("a.ipynb", name="mine"), "mine")
        self.assertEqual(len(name("x" * 200 + ".ipynb")), 63)

    def test_admission(self):
        def admission(text):
            said = _Admission()
            with mock.patch("os.write") as written:
                written.side_effect = lambda fd, data: None if fd == 2 else real(fd, data)
                for part in text:
                    os.write(said.write, part)
                os.close(said.write)
                while not said.ended():
                    pass
                return said, [call.args[1] for call in written.call_args_list if call.args[0] == 2]

        real = os.write
        said, passed = admission([b'{"waits": true, "text": "later"}\n{"ok": true, "work', b'load": 7}\n', b"of the kernel"])
        self.assertEqual((said.answer["workload"], b"".join(passed)), (7, b"of the kernel"))
        said, passed = admission([b'{"ok": false, "reason": "DUPLICATE", "error": "taken"}\n'])
        self.assertEqual((said.answer, passed, said.last()["error"], said.last()["reason"]), (None, [], "taken", "DUPLICATE"))
        self.assertEqual(admission([b"sluice: old\n"])[0].last(), {"error": "sluice: old"})
        self.assertEqual(admission([b'{"waits": true, "name": "n", "text": "full"}\n'])[0].last()["error"], "full")
        self.assertIn("said nothing", admission([])[0].last()["error"])


class Server(unittest.IsolatedAsyncioTestCase):
    def provisioner(self, fake):
        made = SluiceProvisioner(kernel_id="k", command=fake.path)
        made.workload = "a"
        return made

    async def test_one_question_for_all(self):
        fake = Fake(json.dumps([ROW]))
        asked, made = server.Asked(), self.provisioner(fake)
        answers = await asyncio.gather(*(server.answer(asked, made) for _ in range(20)))
        self.assertEqual({answer["state"] for answer in answers}, {"running"})
        self.assertEqual(fake.words(), ["ps --json"])
        await asyncio.sleep(server.FRESH_SECONDS * 1.1)
        await server.answer(asked, made)
        self.assertEqual(len(fake.words()), 2)

    async def test_answers(self):
        self.assertEqual(await server.answer(server.Asked(), object()), {"managed": False})
        for fake, state, why in ((Fake("[]"), "ended", "restart the kernel"), (Fake("", '{"error": "no daemon"}', 69), "unknown", "no daemon")):
            answer = await server.answer(server.Asked(), self.provisioner(fake))
            self.assertEqual((answer["managed"], answer["state"]), (True, state))
            self.assertIn(why, answer["why"][0])


class Package(unittest.TestCase):
    def test_versions(self):
        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        with open(f"{top}/meson.build", encoding="utf-8") as file:
            self.assertIn(f"version: '{__version__}'", file.read())
        with open(f"{top}/jupyter/labextension/package.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["version"], __version__)

    def test_metadata(self):
        self.assertEqual(metadata(request="1GiB", limit="", wait_for_room=0),
            {"kernel_provisioner": {"provisioner_name": "sluice-provisioner", "config": {"request": "1GiB"}}})


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False).result.wasSuccessful())
