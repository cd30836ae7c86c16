"""JAX trains a network on rows that lie on the GPU: TARGET is cpu or cuda, --mib M is the size of the rows."""

import os

os.environ["JAX_PLATFORMS"] = os.environ["TARGET"]
# As much as it needs: several share the GPU. Sums in one order, whatever computes them.
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true"

import jax
import jax.numpy as jnp
import numpy as np

from told import checksum, option, steps, tell

jax.config.update("jax_default_matmul_precision", "highest")
MIB, STEPS, WIDTH, BATCH = option("mib", 96), option("steps", 20), 256, 64
random = np.random.default_rng(7)
rows = random.standard_normal(((MIB << 20) // (4 * WIDTH), WIDTH), dtype=np.float32)
labels = (rows @ random.standard_normal((WIDTH, 10), dtype=np.float32)).argmax(1)
weights = [jnp.asarray(random.standard_normal(shape, dtype=np.float32) / shape[0] ** 0.5) for shape in ((WIDTH, 128), (128, 10))]


def loss_of(weights, x, y):
    scores = jax.nn.relu(x @ weights[0]) @ weights[1]
    return -jax.nn.log_softmax(scores)[jnp.arange(BATCH), y].mean()


@jax.jit
def train(weights, x_all, y_all, step):
    x = jax.lax.dynamic_slice_in_dim(x_all, step * BATCH, BATCH)
    y = jax.lax.dynamic_slice_in_dim(y_all, step * BATCH, BATCH)
    loss, slopes = jax.value_and_grad(loss_of)(weights, x, y)
    return [w - 0.1 * slope for w, slope in zip(weights, slopes)], loss


x_all, y_all = jnp.asarray(rows), jnp.asarray(labels)
x_all.block_until_ready()
tell("ready")
for step in steps(STEPS):
    weights, loss = train(weights, x_all, y_all, step)
    tell("step", step=step, value=float(loss))
tell("end", data=checksum(np.asarray(x_all)))
