"""The launch benchmarks with CuPy: `python3 with_cupy.py ORDINAL KERNELS_FOLDER`."""
import sys

from program import Work, absent, serve

try:
    import cupy
    import numpy as np
except ImportError as error:
    absent(error)


class CuPy(Work):
    def __init__(self, ordinal, folder):
        self.ordinal = ordinal
        cupy.cuda.Device(ordinal).use()
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.other = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.kernel = cupy.RawModule(path=f"{folder}/launch.ptx").get_function("tick")
        self.counter = cupy.zeros(32, dtype=cupy.float32)
        self.args = {n: (self.counter, np.float32(1), np.int32(n)) for n in (-1, 5)}
        self.loaded = []

    def launch(self, n):
        self.kernel((1,), (32,), self.args[n])

    def launches(self, count, n):
        kernel, args = self.kernel, self.args[n]
        for _ in range(count):
            kernel((1,), (32,), args)

    def sync(self):
        self.stream.synchronize()

    def reset(self):
        self.counter.fill(0)

    def counted(self):
        return float(self.counter[0])

    def load(self, path, name):
        cupy.cuda.Device(self.ordinal).use()
        kernel = cupy.RawModule(path=path).get_function(name)
        kernel.compile()
        self.loaded.append(kernel)

    def allocate_and_free(self, size):
        cupy.cuda.Device(self.ordinal).use()
        with self.other:
            array = cupy.empty(size, dtype=cupy.uint8)
            del array
        self.other.synchronize()


try:
    work = CuPy(int(sys.argv[1]), sys.argv[2])
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(work, {"cupy": cupy.__version__})
