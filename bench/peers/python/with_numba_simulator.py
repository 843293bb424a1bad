"""The kernels of bench/cpu-device/simulator.ts in Numba's CUDA simulator: `python3
with_numba_simulator.py 0 KERNELS_FOLDER`.

Measurements are named for the kernel: `saxpy SAMPLES`. A launch of the simulator returns at its
end. It has no warp operations, so the reduction is a tree in shared memory.
"""

import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

from program import absent, now, serve

try:
    import numba
    import numpy as np
    from numba import cuda, float32, int32
except ImportError as error:
    absent(error)

TILE = 16


@cuda.jit
def saxpy(n, a, x, y):
    i = cuda.grid(1)
    if i < n:
        y[i] = a * x[i] + y[i]


@cuda.jit
def reduce_sum(x, total, n):
    part = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    value = float32(0)
    i = cuda.grid(1)
    while i < n:
        value += x[i]
        i += cuda.gridsize(1)
    part[t] = value
    cuda.syncthreads()
    step = 128
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step >>= 1
    if t == 0:
        cuda.atomic.add(total, 0, part[0])


@cuda.jit
def histogram(d, h, n):
    part = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    part[t] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    while i < n:
        cuda.atomic.add(part, d[i], 1)
        i += cuda.gridsize(1)
    cuda.syncthreads()
    cuda.atomic.add(h, t, part[t])


@cuda.jit
def matmul(a, b, c, n):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = float32(0)
    for k in range(0, n, TILE):
        left[ty, tx] = a[row, k + tx]
        right[ty, tx] = b[k + ty, column]
        cuda.syncthreads()
        for m in range(TILE):
            total += left[ty, m] * right[m, tx]
        cuda.syncthreads()
    c[row, column] = total


def timed(samples, launch, right):
    """ms per launch, after one that is proved"""
    launch()
    if not right():
        raise RuntimeError("a wrong result")
    result = []
    for _ in range(int(samples)):
        start = now()
        launch()
        result.append((now() - start) / 1e3)
    return {"samples": result}


def run_saxpy(_work, samples, n):
    n = int(n)
    x, y = np.arange(n, dtype=np.float32) % 1024, np.zeros(n, np.float32)
    return timed(
        samples,
        lambda: saxpy[n // 256, 256](n, np.float32(2), x, y),
        lambda: bool((y == 2 * x).all()),
    )


def run_reduce(_work, samples, n):
    n = int(n)
    x, total = np.arange(n, dtype=np.float32) % 2, np.zeros(1, np.float32)

    def launch():
        total[0] = 0
        reduce_sum[16, 256](x, total, n)

    return timed(samples, launch, lambda: total[0] == n / 2)


def run_histogram(_work, samples, n):
    n = int(n)
    d, h = (np.arange(n) * 7 % 256).astype(np.uint8), np.zeros(256, np.int32)

    def launch():
        h[:] = 0
        histogram[16, 256](d, h, n)

    return timed(samples, launch, lambda: bool((h == np.bincount(d, minlength=256)).all()))


def run_matmul(_work, samples, n):
    n = int(n)
    a = (np.arange(n * n, dtype=np.float32) % 7).reshape(n, n)
    b = (np.arange(n * n, dtype=np.float32) % 5).reshape(n, n)
    c = np.zeros((n, n), np.float32)
    return timed(
        samples,
        lambda: matmul[(n // TILE, n // TILE), (TILE, TILE)](a, b, c, n),
        lambda: bool((c == a @ b).all()),
    )


serve(
    None,
    {"numba": numba.__version__, "numpy": np.__version__},
    {"saxpy": run_saxpy, "reduce": run_reduce, "histogram": run_histogram, "matmul": run_matmul},
)
