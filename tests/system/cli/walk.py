"""A walk of the guide, typed as it stands: python3 walk.py PAGE BUILD FOLDER

The lines behind "$ " in the page's console blocks are typed into one shell, in order; each must end well and print what the page
shows below it, figures aside. A line of dots leaves something out. A look is repeated until it shows that, as a reader would.
"""

import os
import re
import subprocess
import sys
import time

from plain import console, plain

LOOKS = ("sluice ps", "sluice why", "sluice gpus", "sluice events", "tail ")
PATIENCE_S = 30 * int(os.environ.get("SLUICE_TEST_SLOWER", "1"))
MARK = "walk-has-ended"


def commands(page):
    """(what is typed, what it prints) in the page's order."""
    for block in console(page):
        for chunk in re.split(r"^(?=\$ )", block, flags=re.M):
            if chunk:
                typed, _, printed = chunk.partition("\n")
                yield typed.removeprefix("$ "), printed


class Shell:
    def __init__(self, build, folder):
        home = os.path.join(folder, "home")
        os.makedirs(os.path.join(home, "run"))
        os.symlink(os.path.realpath(build), os.path.join(home, "build"))
        keep = {key: os.environ[key] for key in ("PATH", "ASAN_OPTIONS") if key in os.environ}
        self.process = subprocess.Popen(["bash"], cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env={**keep, "HOME": home, "XDG_RUNTIME_DIR": os.path.join(home, "run"), "TMPDIR": home})

    def type(self, line):
        """(status, output); a shell that the line starts reads what is typed next, as bash reads no further than a line."""
        self.process.stdin.write(f"{line}\necho {MARK} $?\n")
        self.process.stdin.flush()
        printed = []
        for said in self.process.stdout:
            before, mark, status = said.partition(MARK)
            printed.append(before)
            if mark:
                return int(status), "".join(printed)
        sys.exit(f"'{line}' ended the shell: {''.join(printed)}")


def figureless(text):
    # That nothing was wrong is more than a figure. What a busy machine adds is no part of the page.
    text = text.replace('"wrong":0', '"wrong":none')
    return plain(re.sub(r"^sluice (park|resume): this takes long.*\n", "", text, flags=re.M))


def shows(printed, wanted):
    parts = [re.escape(figureless(part)) for part in re.split(r"^ *\.\.\.\n", wanted, flags=re.M)]
    return re.fullmatch(".*".join(parts), figureless(printed))


def main():
    page, build, folder = sys.argv[1:]
    shell, count = Shell(build, folder), 0
    for typed, wanted in commands(page):
        end = time.monotonic() + PATIENCE_S
        # A refusal is shown as one.
        status = 75 if "refused: " in wanted else 0
        while (answer := shell.type(typed))[0] != status or not shows(answer[1], wanted):
            if not typed.startswith(LOOKS) or time.monotonic() > end:
                sys.exit(f"$ {typed}\nprinted, with status {answer[0]}:\n{answer[1]}and the page shows:\n{wanted}")
            time.sleep(0.2)
        if "-v" in os.environ.get("WALK", ""):
            print(f"$ {typed}\n{answer[1]}", end="", flush=True)
        count += 1
    shell.process.stdin.close()
    shell.process.wait()
    print(f"{count} lines typed")
    sys.exit(count == 0)


main()
