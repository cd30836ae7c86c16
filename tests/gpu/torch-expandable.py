"""PyTorch's expandable segments: its allocator makes handles and maps them itself."""
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch

torch.manual_seed(2)
kept = []
for size in (1, 3, 17, 64, 130):
    kept.append(torch.full((size << 18,), size, dtype=torch.int32, device="cuda"))
del kept[1::2]
kept.append(torch.full((100 << 18,), 7, dtype=torch.int32, device="cuda"))
print("sums", [int(t.sum(dtype=torch.int64)) for t in kept])
torch.cuda.empty_cache()
print("after", [int(t.sum(dtype=torch.int64)) for t in kept])
