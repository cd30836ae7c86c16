"""PyTorch trains a network on rows that lie on the GPU, with Adam: TARGET is cpu or cuda, --mib M is the size of the rows."""

import os

import numpy as np
import torch

from told import checksum, option, steps, tell

MIB, STEPS, WIDTH, BATCH = option("mib", 96), option("steps", 20), 256, 64
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:2"
torch.use_deterministic_algorithms(True)
device = torch.device(os.environ["TARGET"])
random = np.random.default_rng(7)
rows = random.standard_normal(((MIB << 20) // (4 * WIDTH), WIDTH), dtype=np.float32)
labels = (rows @ random.standard_normal((WIDTH, 10), dtype=np.float32)).argmax(1)


def layer(width, out):
    """Made by numpy: the same on each device."""
    made = torch.nn.Linear(width, out, bias=False)
    made.weight.data = torch.from_numpy(random.standard_normal((out, width), dtype=np.float32) / width**0.5)
    return made


network = torch.nn.Sequential(layer(WIDTH, 128), torch.nn.ReLU(), layer(128, 10)).to(device)
optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
x_all, y_all = torch.from_numpy(rows).to(device), torch.from_numpy(labels).to(device)
tell("ready")
for step in steps(STEPS):
    part = slice(step * BATCH, step * BATCH + BATCH)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(network(x_all[part]), y_all[part])
    loss.backward()
    optimizer.step()
    tell("step", step=step, value=loss.item())
tell("end", data=checksum(x_all.cpu().numpy()))
