"""What tests/bench/frameworks measures with tinygrad.

kernels FOLDER PROGRAM WORD...: runs the program; the PTX of each of its kernels becomes a file of FOLDER.
matmul: prints how many GFLOPS a product of two matrices of 512 by 512 floats reaches; DEV says where.
rate ALONE ONE OTHER: of trainings, what each told: prints seconds of a step alone, and beside over alone.
"""

import json
import os
import runpy
import sys
import time
from statistics import mean, median

# Steps before these compile.
WARM, SIDE, ROUNDS = 5, 512, 30


def kernels(folder, program, *words):
    from tinygrad.runtime.support.compiler_cuda import PTXCompiler

    compiled, known = PTXCompiler.compile, set()

    def keep(self, text):
        made = compiled(self, text)
        if made not in known:
            known.add(made)
            with open(os.path.join(folder, f"{len(known)}.ptx"), "wb") as file:
                file.write(made)
        return made

    PTXCompiler.compile = keep
    sys.argv = [program, *words]
    if program == "matmul":
        matmul()
    else:
        runpy.run_path(program, run_name="__main__")


def matmul():
    import numpy as np
    from tinygrad import Device, Tensor, TinyJit

    random = np.random.default_rng(1)
    left, right = (Tensor(random.random((SIDE, SIDE), dtype=np.float32)).realize() for _ in range(2))
    times = []

    @TinyJit
    def product():
        return (left @ right).realize()

    for _ in range(ROUNDS):
        Device[Device.DEFAULT].synchronize()
        begin = time.perf_counter()
        result = product()
        Device[Device.DEFAULT].synchronize()
        times.append(time.perf_counter() - begin)
    right_one = left.numpy() @ right.numpy()
    if not np.allclose(result.numpy(), right_one, rtol=1e-3):
        sys.exit("matmul: the product is wrong")
    print(f"{2 * SIDE**3 / median(times[WARM:]) / 1e9:.4g}")


def rate(alone, *beside):
    def steps(path):
        with open(path, encoding="utf-8") as lines:
            return [e["at"] for e in map(json.loads, lines) if e["event"] == "step"][WARM:]

    def seconds(times):
        return (times[-1] - times[0]) / (len(times) - 1)

    told = [steps(path) for path in beside]
    # While both train.
    begin, end = max(times[0] for times in told), min(times[-1] for times in told)
    both = mean(sum(begin <= t <= end for t in times) for times in told) / (end - begin)
    print(f"{seconds(steps(alone)):.4g} {1 / both / seconds(steps(alone)):.4g}")


globals()[sys.argv[1]](*sys.argv[2:])
