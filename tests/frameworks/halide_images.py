"""Halide blurs images and multiplies matrices that stay on the device: TARGET is cpu or cuda, --mib M is the size of the images.

Each step blurs one image and multiplies a part of it with a part of the next one; the last step is the
mean of all images, read back.
"""

import os

import halide as hl
import numpy as np

from told import checksum, option, steps, tell

MIB, STEPS, WIDTH, SIDE = option("mib", 96), option("steps", 20), 1024, 128
CUDA = os.environ["TARGET"] == "cuda"
x, y, xo, yo, xi, yi = (hl.Var(name) for name in ("x", "y", "xo", "yo", "xi", "yi"))
target = hl.get_jit_target_from_environment()
if CUDA:
    target = target.with_feature(hl.TargetFeature.CUDA).with_feature(hl.TargetFeature.CUDACapability80)


class Blur:
    def __init__(self):
        self.image = hl.ImageParam(hl.Float(32), 2)
        edges = hl.BoundaryConditions.repeat_edge(self.image)
        rows, self.out = hl.Func("rows"), hl.Func("out")
        rows[x, y] = (edges[x - 1, y] + edges[x, y] + edges[x + 1, y]) / hl.f32(3)
        self.out[x, y] = (rows[x, y - 1] + rows[x, y] + rows[x, y + 1]) / hl.f32(3)
        if CUDA:
            # A tile's rows lie in shared memory, behind a barrier.
            self.out.gpu_tile(x, y, xo, yo, xi, yi, 16, 16)
            rows.compute_at(self.out, xo).gpu_threads(x, y)
        else:
            self.out.vectorize(x, 8)
            rows.compute_at(self.out, y)
        self.out.compile_jit(target)

    def __call__(self, image, result):
        self.image.set(image)
        self.out.realize(result, target)


class Product:
    def __init__(self):
        self.left, self.right = hl.ImageParam(hl.Float(32), 2), hl.ImageParam(hl.Float(32), 2)
        k = hl.RDom([(0, SIDE)])
        total, self.out = hl.Func("total"), hl.Func("product")
        total[x, y] = hl.f32(0)
        total[x, y] += self.left[k, y] * self.right[x, k]
        self.out[x, y] = total[x, y]
        if CUDA:
            self.out.gpu_tile(x, y, xo, yo, xi, yi, 16, 16)
            total.compute_at(self.out, xi)
        else:
            self.out.vectorize(x, 8)
            total.compute_at(self.out, y)
        self.out.compile_jit(target)

    def __call__(self, left, right, result):
        self.left.set(left)
        self.right.set(right)
        self.out.realize(result, target)


def back(buffer):
    buffer.copy_to_host()
    return np.array(buffer, copy=False)


random = np.random.default_rng(9)
images = []
for _ in range(MIB // 4):
    images.append(hl.Buffer(random.random((WIDTH, WIDTH), dtype=np.float32)))
    images[-1].set_host_dirty()
    if CUDA:
        images[-1].copy_to_device(target)
blur, product = Blur(), Product()
blurred = hl.Buffer(hl.Float(32), [WIDTH, WIDTH])
multiplied = hl.Buffer(hl.Float(32), [SIDE, SIDE])
tell("ready")
for step in steps(STEPS):
    image = images[step % len(images)]
    blur(image, blurred)
    product(image, blurred, multiplied)
    # The blurred image takes the image's place: what is read back at the end went through the device.
    images[step % len(images)], blurred = blurred, image
    tell("step", step=step, value=float(back(multiplied).sum(dtype=np.float64)) / SIDE**3)
data, mean = 0, 0.0
for image in images:
    image.set_host_dirty(False)
    image.set_device_dirty(CUDA)
    data ^= checksum(back(image))
    mean += float(back(image).mean(dtype=np.float64)) / len(images)
tell("step", step=STEPS, value=mean)
tell("end", data=data)
