"""tinygrad trains a transformer to continue sequences of numbers, each step a graph (TinyJit), with Adam.

--gpus N trains on N devices, --mib M is the size of a table of sequences on the GPU; DEV says which kind of device.
"""

import numpy as np
from tinygrad import Context, Device, Tensor, TinyJit, Variable, nn

from told import checksum, option, steps, tell

GPUS, MIB, STEPS = option("gpus", 1), option("mib", 96), option("steps", 20)
BATCH, LENGTH, WORDS, WIDTH, HEADS = 16, 16, 32, 32, 2
random = np.random.default_rng(8)


def weights(*shape):
    """Made by numpy: the same on each device and no kernels for it."""
    return Tensor(random.standard_normal(shape, dtype=np.float32) / shape[0] ** 0.5)


class Block:
    def __init__(self):
        self.query, self.key, self.value, self.out = (weights(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = weights(WIDTH, 2 * WIDTH), weights(2 * WIDTH, WIDTH)
        self.norms = [nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)]

    def attention(self, x):
        q, k, v = (
            (x @ w).reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)
            for w in (self.query, self.key, self.value)
        )
        x = q.scaled_dot_product_attention(k, v, is_causal=True)
        return x.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH) @ self.out

    def __call__(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + (self.norms[1](x) @ self.up).gelu() @ self.down


class Model:
    def __init__(self):
        self.words, self.places, self.block = weights(WORDS, WIDTH), weights(LENGTH, WIDTH), Block()

    def __call__(self, x):
        return self.block(self.words[x] + self.places) @ self.words.transpose()


# Sequences that go up by one and the same number: the next one follows from the two before.
count = (MIB << 20) // (4 * (LENGTH + 1))
begin, stride = random.integers(0, WORDS, (2, count, 1))
sequences = ((begin + stride * np.arange(LENGTH + 1)) % WORDS).astype(np.int32)
model = Model()
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)
table = Tensor(sequences)
devices = tuple(f"{Device.DEFAULT}:{i}" for i in range(GPUS))
if GPUS > 1:
    # The optimizer has the model's parameters among its own; a tensor can be sharded once.
    for tensor in nn.state.get_parameters(optimizer):
        tensor.shard_(devices)
Tensor.realize(table, *nn.state.get_parameters(optimizer))
tell("ready")


@TinyJit
def train(batch):
    rows = table.shrink(((batch * BATCH, batch * BATCH + BATCH), None))
    if GPUS > 1:
        # The first device has the table, and each gets its part of the batch from there.
        rows = rows.shard(devices, axis=0)
    optimizer.zero_grad()
    loss = model(rows[:, :-1]).sparse_categorical_crossentropy(rows[:, 1:]).backward()
    return loss.realize(*optimizer.schedule_step())


with Context(TRAINING=1):
    for step in steps(STEPS):
        batch = Variable("batch", 0, count // BATCH - 1).bind(step)
        tell("step", step=step, value=train(batch).item())
tell("end", data=checksum(table.numpy()))
