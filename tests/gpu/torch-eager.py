"""PyTorch as most people use it: autograd, the caching allocator, streams, pinned copies, out of memory."""
import torch

torch.manual_seed(1)
torch.use_deterministic_algorithms(True, warn_only=True)
device = torch.device("cuda")
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(256, 512, device=device)
y = torch.randint(0, 10, (256,), device=device)
for _ in range(20):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print("loss %.4f" % loss.item())

side = torch.cuda.Stream()
pinned = torch.arange(1 << 20, dtype=torch.int64).pin_memory()
with torch.cuda.stream(side):
    there = pinned.to(device, non_blocking=True)
    back = there.cpu()
side.synchronize()
print("copied", int(back.sum()))

total = torch.cuda.mem_get_info()[1]
try:
    torch.empty(2 * total, dtype=torch.uint8, device=device)
    print("more than there is was given")
except torch.cuda.OutOfMemoryError:
    print("out of memory, as it should be")
free_before = torch.cuda.mem_get_info()[0]
block = torch.empty(256 << 20, dtype=torch.uint8, device=device)
print("free falls", free_before - torch.cuda.mem_get_info()[0] >= 256 << 20)
del block
torch.cuda.empty_cache()
print("free comes back", torch.cuda.mem_get_info()[0] >= free_before)
print("sum", int(torch.ones(1 << 24, dtype=torch.int32, device=device).sum()))
