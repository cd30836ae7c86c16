# %% the first cell of a notebook
import numpy as np
from tinygrad import Tensor
from told import checksum, tell
random = np.random.default_rng(3)
table = Tensor(random.integers(0, 1000, (24 << 20,), dtype=np.int32)).realize()
tell("step", step=0, value=table[:1024].sum().item())
# %% it changes what is on the GPU
table.assign(table * 3 + 1).realize()
tell("step", step=1, value=table[:1024].sum().item())
# %% a number from what the cell before left
tell("step", step=2, value=(table[-4096:] * 2).max().item())
# %% all of it read back
tell("end", data=checksum(table.numpy()))
