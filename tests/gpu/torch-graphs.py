"""CUDA graphs: capture with the caching allocator, replay, and memory of their own pool."""
import torch

x = torch.zeros(1 << 20, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        y = x * 2 + 1
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2 + 1
    z = y.sum()
for value in range(5):
    x.fill_(value)
    graph.replay()
    print("replay", value, int(z))
