"""A model server of tinygrad, for the demo: --mib M is the size of its table of words, --steps N how many requests it answers.

Each answer is compared with numpy's. What it tells is as of the trainings in tests/frameworks, with the time that each took.
"""

import time

import numpy as np
from tinygrad import Tensor, TinyJit, Variable, dtypes

from told import option, steps, tell

MIB, STEPS, WORDS, WIDTH = option("mib", 96), option("steps", 100), 16, 32
random = np.random.default_rng(11)
table = random.standard_normal(((MIB << 20) // (4 * WIDTH), WIDTH), dtype=np.float32)
layers = [random.standard_normal((WIDTH, WIDTH), dtype=np.float32) / WIDTH**0.5 for _ in range(2)]
table_there, layers_there = Tensor(table), [Tensor(layer) for layer in layers]
Tensor.realize(table_there, *layers_there)
tell("ready")


@TinyJit
def answer(at):
    words = table_there.shrink(((at, at + WORDS), None)).reshape(WORDS, WIDTH)
    return ((words @ layers_there[0]).relu() @ layers_there[1]).sum(0).realize()


wrong, times = 0, []
for step in steps(STEPS):
    first = int(random.integers(0, len(table) - WORDS))
    begin = time.monotonic()
    got = answer(Variable("at", 0, len(table) - WORDS).bind(first)).numpy()
    times.append(time.monotonic() - begin)
    right = (np.maximum(table[first : first + WORDS] @ layers[0], 0) @ layers[1]).sum(0)
    wrong += not np.allclose(got, right, rtol=1e-4, atol=1e-4)
    tell("step", step=step, ms=round(times[-1] * 1000))
    time.sleep(0.05)
# The first two are slow because they compile.
times = sorted(times[2:])
tell("end", wrong=int(wrong) + int(not (table_there.numpy() == table).all()), median_ms=round(times[len(times) // 2] * 1000),
     slowest_ms=round(times[-1] * 1000))
