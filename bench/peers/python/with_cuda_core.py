"""The launch benchmarks with NVIDIA's cuda.core: `python3 with_cuda_core.py ORDINAL
KERNELS_FOLDER`."""

import sys

from program import Work, absent, serve

try:
    import cuda.core as library

    try:
        from cuda.core import Device, LaunchConfig, ObjectCode, launch
    except ImportError:
        from cuda.core.experimental import Device, LaunchConfig, ObjectCode, launch
    import numpy as np
    from cuda.bindings import driver
except ImportError as error:
    absent(error)


def check(results):
    if int(results[0]) != 0:
        raise RuntimeError(str(results[0]))
    return results[1:]


class CudaCore(Work):
    def __init__(self, ordinal, folder):
        self.device = Device(ordinal)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.other = self.device.create_stream()
        with open(f"{folder}/launch.ptx", "rb") as file:
            self.kernel = ObjectCode.from_ptx(file.read()).get_kernel("tick")
        self.config = LaunchConfig(grid=1, block=32)
        self.counter = self.device.allocate(4096, stream=self.stream)
        self.a = np.float32(1)
        self.ns = {n: np.int32(n) for n in (-1, 5)}
        self.value = np.zeros(1, dtype=np.float32)
        self.loaded = []

    def launch(self, n):
        launch(self.stream, self.config, self.kernel, self.counter, self.a, self.ns[n])

    def launches(self, count, n):
        stream, config, kernel, counter, a, n = (
            self.stream,
            self.config,
            self.kernel,
            self.counter,
            self.a,
            self.ns[n],
        )
        for _ in range(count):
            launch(stream, config, kernel, counter, a, n)

    def sync(self):
        self.stream.sync()

    def reset(self):
        check(driver.cuMemsetD32(int(self.counter.handle), 0, 1))
        self.device.sync()

    def counted(self):
        check(driver.cuMemcpyDtoH(self.value.ctypes.data, int(self.counter.handle), 4))
        return float(self.value[0])

    def load(self, path, name):
        self.device.set_current()
        with open(path, "rb") as file:
            module = ObjectCode.from_ptx(file.read())
        self.loaded.append(module.get_kernel(name))

    def allocate_and_free(self, size):
        self.device.set_current()
        self.device.allocate(size, stream=self.other).close(self.other)
        self.other.sync()


try:
    work = CudaCore(int(sys.argv[1]), sys.argv[2])
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(work, {"cuda.core": library.__version__})
