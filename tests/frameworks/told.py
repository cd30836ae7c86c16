"""What each program of this folder tells its test: JSON, a line for each event, as the programs in tests/programs do."""

import json
import os
import sys
import time
import zlib


def tell(event, **facts):
    """`at`: when, in seconds of this machine's monotonic clock, the same for all programs."""
    print(json.dumps({"event": event, **facts, "at": round(time.monotonic(), 4)}), flush=True)


def steps(count):
    """Counts to COUNT; half-way it waits for the file HOLD, if there is one to wait for, as for input that is late.

    It ends sooner, once there is a file UNTIL.
    """
    hold, until = os.environ.get("HOLD"), os.environ.get("UNTIL")
    for step in range(count):
        if until and os.path.exists(until):
            return
        if hold and step == count // 2:
            tell("half")
            while not os.path.exists(hold):
                time.sleep(0.02)
        yield step


def checksum(array):
    return zlib.crc32(array.tobytes())


def option(name, default):
    """The value of --NAME on the command line, of the default's type."""
    words = sys.argv[1:]
    flag = "--" + name
    return type(default)(words[words.index(flag) + 1]) if flag in words else default
