"""CuPy: its pool, the driver's pool, managed memory, a kernel compiled here, streams and events."""
import cupy as cp

x = cp.arange(1 << 20, dtype=cp.int64)
print("sum", int(x.sum()))
kernel = cp.RawKernel(
    r"""extern "C" __global__ void twice(long long *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] *= 2;
    }""",
    "twice",
)
kernel((x.size // 256,), (256,), (x, cp.int32(x.size)))
print("twice", int(x.sum()))
for name, allocator in (
    ("managed", cp.cuda.MemoryPool(cp.cuda.malloc_managed).malloc),
    ("async", cp.cuda.MemoryAsyncPool().malloc),
):
    with cp.cuda.using_allocator(allocator):
        y = cp.full(1 << 20, 3, dtype=cp.int64)
        print(name, int(y.sum()))
        del y
with cp.cuda.Stream(non_blocking=True) as stream:
    event = stream.record()
    z = cp.ones(1 << 16).sum()
    stream.synchronize()
print("event done", event.done, float(z))
