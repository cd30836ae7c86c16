"""The command line of Sluice, asked with --json.

SLUICE_JUPYTER_COMMAND is the path of `sluice`; without it, `sluice` of PATH is used. Sizes are bytes.
"""

import json
import os
import subprocess

COMMAND = "SLUICE_JUPYTER_COMMAND"
# Of the workload that a kernel of the provisioner is.
NAME = "SLUICE_JUPYTER_NAME"

# Exit statuses of sluice(1) that are told apart.
NO_DAEMON = 69

# A question; the answer of a daemon that starts takes some seconds.
ASK_SECONDS = 15
# Moving memory takes as long as the memory is large.
MOVE_SECONDS = 600

# What a person calls a state that `sluice ps` names otherwise.
_WORDS = {"bound": "running", "evicted": "waiting", "returning": "waiting", "resuming": "waiting"}


class SluiceError(Exception):
    """A refusal or failure, in the words of `sluice`; status is its exit status (0: it did not run)."""

    def __init__(self, text, status=0):
        super().__init__(text)
        self.status = status


def _said(text):
    """The sentence in what `sluice --json` wrote to standard error."""
    for line in reversed(text.strip().splitlines()):
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict) and "error" in answer:
            return answer["error"] + (f" ({answer['hint']})" if answer.get("hint") else "")
    return text.strip()


def run(*words, command=None, seconds=ASK_SECONDS):
    """The standard output of `sluice WORD ...`. Raises SluiceError."""
    command = command or os.environ.get(COMMAND) or "sluice"
    try:
        done = subprocess.run([command, *words], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=seconds, check=False)
    except OSError as error:
        raise SluiceError(f"cannot start {command}: {error.strerror}; install Sluice, or set {COMMAND} to the path of sluice") from None
    except subprocess.TimeoutExpired:
        raise SluiceError(f"sluice {words[0]} has not ended after {seconds} s; `sluice why` says what it waits for") from None
    if done.returncode:
        raise SluiceError(_said(done.stderr) or f"sluice {words[0]} ended with status {done.returncode}", done.returncode)
    return done.stdout


def ask(*words, **how):
    """As run, with --json: the parsed answer."""
    return json.loads(run(*words, "--json", **how))


def workloads(**how):
    """All workloads of this user as a dict: name -> rows, one for each GPU."""
    found = {}
    for row in ask("ps", **how):
        if row.get("workload") is not None and row["uid"] == os.geteuid():
            found.setdefault(row["name"], []).append(row)
    return found


def own_name():
    """The name of the workload that this process belongs to. Raises SluiceError if there is none."""
    name = os.environ.get(NAME)
    if name:
        return name
    if "SLUICE_WORKLOAD" in os.environ:
        names = {rows[0]["pid"]: name for name, rows in workloads().items()}
        pid = os.getpid()
        while pid > 1:
            if pid in names:
                return names[pid]
            pid = _parent(pid)
    raise SluiceError("this kernel is no workload of Sluice; choose the kernel that `jupyter sluice install` makes")


def _parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def summary(rows):
    """What is shown of a workload: its rows of `sluice ps` on all GPUs as one dict."""
    first = rows[0]
    word = first["state"] if first["state"] in ("waiting", "gone") else first["residency"]

    def total(key):
        return sum(row[key] for row in rows)

    return {
        "name": first["name"],
        "state": _WORDS.get(word, word),
        "gpu_bytes": total("backing_bytes") + total("hidden_bytes") - total("evicted_bytes"),
        "host_bytes": total("evicted_bytes"),
        "request_bytes": total("request_bytes"),
        "limit_bytes": total("limit_bytes"),
    }


def amount(count):
    """Bytes for people: 1.5 GiB."""
    for unit in ("TiB", "GiB", "MiB"):
        size = 1 << {"TiB": 40, "GiB": 30, "MiB": 20}[unit]
        if count >= size:
            return f"{count / size:.2f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{count} B"
