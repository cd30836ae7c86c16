"""tinygrad trains a convolutional network on images that lie on the GPU, each step a graph (TinyJit).

--gpus N trains on N devices, --mib M is the size of the images; DEV says which kind of device, as ever with tinygrad.
"""

import numpy as np
from tinygrad import Context, Device, Tensor, TinyJit, Variable, nn

from told import checksum, option, steps, tell

GPUS, MIB, STEPS, BATCH = option("gpus", 1), option("mib", 96), option("steps", 20), 32
random = np.random.default_rng(7)


def weights(*shape, fan_in):
    """Made by numpy: the same on each device and no kernels for it."""
    return Tensor((random.standard_normal(shape, dtype=np.float32) / fan_in**0.5))


class Network:
    def __init__(self):
        self.first = weights(8, 1, 3, 3, fan_in=9)
        self.second = weights(16, 8, 3, 3, fan_in=72)
        self.last = weights(400, 10, fan_in=400)

    def __call__(self, x):
        x = x.conv2d(self.first).relu().max_pool2d()
        x = x.conv2d(self.second).relu()
        return x.flatten(1) @ self.last


images = random.standard_normal(((MIB << 20) // 1024, 1, 16, 16), dtype=np.float32)
# What is to be learnt: which of ten patterns an image is most like.
labels = (images.reshape(-1, 256) @ random.standard_normal((256, 10), dtype=np.float32)).argmax(1).astype(np.int32)
network = Network()
optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.02, momentum=0.9)
x_all, y_all = Tensor(images), Tensor(labels)
devices = tuple(f"{Device.DEFAULT}:{i}" for i in range(GPUS))
if GPUS > 1:
    for tensor in nn.state.get_parameters(optimizer):
        tensor.shard_(devices)
Tensor.realize(x_all, y_all, *nn.state.get_parameters(optimizer))
tell("ready")


@TinyJit
def train(batch):
    part = (batch * BATCH, batch * BATCH + BATCH)
    x, y = x_all.shrink((part, None, None, None)), y_all.shrink((part,))
    if GPUS > 1:
        # The first device has all images, and each gets its part of the batch from there.
        x, y = x.shard(devices, axis=0), y.shard(devices, axis=0)
    optimizer.zero_grad()
    loss = network(x).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimizer.schedule_step())


with Context(TRAINING=1):
    for step in steps(STEPS):
        batch = Variable("batch", 0, len(labels) // BATCH - 1).bind(step)
        tell("step", step=step, value=train(batch).item())
tell("end", data=checksum(x_all.numpy()))
