"""Host modules and libraries: loading, functions, their attributes, globals, launches that are wrong."""

import os

from cu import PTR, U32, U64, cu, end, get, image, launch, must, pattern, put, result, say, start, words

dev = start()
module = must("cuModuleLoadData", image())
say("functions", must("cuModuleGetFunctionCount", module) > 3)
fill = must("cuModuleGetFunction", module, b"prog_fill")
check = must("cuModuleGetFunction", module, b"prog_check")
say("name", must("cuFuncGetName", fill).decode())
say("its module", int(must("cuFuncGetModule", fill)) == int(module))
kinds = cu.CUfunction_attribute
for name in ("MAX_THREADS_PER_BLOCK", "SHARED_SIZE_BYTES", "CONST_SIZE_BYTES"):
    say(name, must("cuFuncGetAttribute", getattr(kinds, f"CU_FUNC_ATTRIBUTE_{name}"), fill))
say("parameter 1", must("cuFuncGetParamInfo", fill, 1))
say("no fifth parameter", result("cuFuncGetParamInfo", fill, 9))

count = 10000
data = must("cuMemAlloc", 4 * count)
bad = must("cuMemAlloc", 4)
must("cuMemsetD32", bad, 0, 1)
stream = cu.CUstream(0)
launch(fill, count, stream, (int(data), PTR), (count, U64), (1, U64), (42, U32))
launch(check, count, stream, (int(data), PTR), (count, U64), (1, U64), (42, U32), (int(bad), PTR))
must("cuCtxSynchronize")
say("wrong words", words(get(bad, 4))[0])
put(data, bytes(4))
launch(check, count, stream, (int(data), PTR), (count, U64), (1, U64), (42, U32), (int(bad), PTR))
must("cuCtxSynchronize")
say("wrong words after one was overwritten", words(get(bad, 4))[0])

where, size = must("cuModuleGetGlobal", module, b"prog_global")
say("a global's size", size)
must("cuMemcpyHtoD", where, pattern(size, 5), size)
say("a global reads back", get(where, size) == pattern(size, 5))
setter = must("cuModuleGetFunction", module, b"prog_set_global")
launch(setter, 1, stream, (987, U32))
must("cuCtxSynchronize")
say("a kernel writes it", words(get(where, 4))[0])
say("no such global", result("cuModuleGetGlobal", module, b"prog_nothing"))

say("too many threads", result("cuLaunchKernel", fill, 1, 1, 1, 4096, 1, 1, 0, stream,
    ((int(data), 1, 1, 1), (PTR, U64, U64, U32)), 0))
say("no blocks", result("cuLaunchKernel", fill, 0, 1, 1, 1, 1, 1, 0, stream,
    ((int(data), 1, 1, 1), (PTR, U64, U64, U32)), 0))
say("rubbish is no module", result("cuModuleLoadData", bytes(64)))
say("no such file", result("cuModuleLoad", b"/nonexistent/module"))
second = must("cuModuleLoad", os.environ["CLIENT_IMAGE"].encode())
say("two modules, two globals", int(must("cuModuleGetGlobal", second, b"prog_global")[0]) != int(where))
must("cuModuleUnload", second)

library = must("cuLibraryLoadData", image(), [], [], 0, [], [], 0)
kernel = must("cuLibraryGetKernel", library, b"prog_step")
say("a kernel's name", must("cuKernelGetName", kernel).decode())
function = must("cuKernelGetFunction", kernel)
must("cuMemsetD32", bad, 6, 1)
launch(function, 1, stream, (int(bad), PTR), (7, U32), (0, U32))
must("cuCtxSynchronize")
say("a library's kernel", words(get(bad, 4))[0])
must("cuLibraryUnload", library)
most = must("cuOccupancyMaxActiveBlocksPerMultiprocessor", fill, 256, 0)
say("occupancy", most > 0)
must("cuMemFree", data)
must("cuMemFree", bad)
must("cuModuleUnload", module)
end(dev)
