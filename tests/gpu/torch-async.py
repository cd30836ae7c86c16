"""PyTorch on the driver's own pools (cudaMallocAsync)."""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
import torch

torch.manual_seed(3)
a = torch.randn(2048, 2048, device="cuda")
for _ in range(10):
    a = torch.tanh(a @ a.t() / 2048)
print("norm %.3f" % float(a.norm()))
print("sum", int(torch.ones(1 << 25, dtype=torch.int32, device="cuda").sum()))
