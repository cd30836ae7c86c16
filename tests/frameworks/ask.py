"""ask.py PORT COUNT: asks the server of tinygrad_server.py COUNT questions, and tells its answers and how long they took.

Three questions before them are not counted: the server compiles for those. After each answer it pauses, as clients
do. Time runs from before the connection until the last byte. Any answer but a 200 is an error.
"""

import json
import random
import sys
import time
from urllib.request import urlopen

from told import tell

PORT, COUNT, UNCOUNTED, PAUSE = int(sys.argv[1]), int(sys.argv[2]), 3, 0.05
questions = random.Random(12)
times = []


def get(path):
    with urlopen(f"http://127.0.0.1:{PORT}/{path}", timeout=120) as reply:
        return json.load(reply)


def quantile(part):
    """The smallest time that at least this part of all does not exceed, in ms."""
    return round(sorted(times)[-int(-part * len(times) // 1) - 1] * 1000, 1)


for step in range(-UNCOUNTED, COUNT):
    at = questions.randrange(1 << 30)
    begin = time.monotonic()
    value = get(f"answer?at={at}")["answer"]
    if step >= 0:
        times.append(time.monotonic() - begin)
        tell("step", step=step, value=value)
    time.sleep(PAUSE)
tell("times", count=len(times), p50=quantile(0.5), p99=quantile(0.99), slowest=quantile(1))
get("end")
