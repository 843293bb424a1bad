"""Kernels as Triton's tutorials have them: `python3 with_triton.py ORDINAL KERNELS_FOLDER`.

The same problems as in bench/kernels/beside-nvcc.ts, timed alike, between two of the device's
events. Nothing is tuned: blocks and warps are what the tutorials choose for such sizes
(01-vector-add, 02-fused-softmax, 05-layer-norm). Of softmax, which the tutorial has had in two
forms, the faster one is taken.
"""

import sys

from program import absent, serve

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as error:
    absent(error)
if not torch.cuda.is_available():
    absent("torch.cuda is not available")

N = 64 * 2**20
ROWS = 8192
COLUMNS = 4096
EPS = 1e-5


@triton.jit
def saxpy_kernel(y_ptr, x_ptr, a, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, a * x + y, mask=mask)


@triton.jit
def elementwise_kernel(y_ptr, x_ptr, z_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    v = tl.load(x_ptr + offsets, mask=mask)
    w = tl.load(z_ptr + offsets, mask=mask)
    gate = v / (1 + tl.exp(-v))
    tl.store(y_ptr + offsets, gate * w + tl.sqrt(tl.abs(w) + 1), mask=mask)


@triton.jit
def sum_kernel(out_ptr, x_ptr, n, BLOCK_SIZE: tl.constexpr):
    sums = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for start in range(tl.program_id(axis=0) * BLOCK_SIZE, n, tl.num_programs(axis=0) * BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        sums += tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(sums, axis=0))


@triton.jit
def softmax_row_kernel(y_ptr, x_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * stride + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def softmax_rows_kernel(y_ptr, x_ptr, stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr):
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    for row in range(tl.program_id(axis=0), n_rows, tl.num_programs(axis=0)):
        x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_ptr + row * stride + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def layer_norm_kernel(y_ptr, x_ptr, w_ptr, b_ptr, stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    y_ptr += row * stride
    x_ptr += row * stride
    sums = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for off in range(0, n_cols, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        sums += tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0)
    mean = tl.sum(sums, axis=0) / n_cols
    squares = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for off in range(0, n_cols, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0)
        x = tl.where(cols < n_cols, x - mean, 0.0)
        squares += x * x
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps)
    for off in range(0, n_cols, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        w = tl.load(w_ptr + cols, mask=mask)
        b = tl.load(b_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0)
        tl.store(y_ptr + cols, (x - mean) * scale * w + b, mask=mask)


@triton.jit
def rms_norm_kernel(y_ptr, x_ptr, w_ptr, stride, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0)
    scale = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    tl.store(y_ptr + row * stride + cols, x * scale * w, mask=mask)


def numbers(*shape):
    return torch.rand(*shape, device="cuda", dtype=torch.float32)


def saxpy():
    y, x = numbers(N), numbers(N)
    expected = 2.5 * x + y
    return (
        lambda: saxpy_kernel[(triton.cdiv(N, 1024),)](y, x, 2.5, N, BLOCK_SIZE=1024),
        lambda: y,
        expected,
    )


def elementwise():
    y, x, z = torch.empty(N, device="cuda"), numbers(N), numbers(N)
    expected = torch.nn.functional.silu(x) * z + torch.sqrt(torch.abs(z) + 1)
    return (
        lambda: elementwise_kernel[(triton.cdiv(N, 1024),)](y, x, z, N, BLOCK_SIZE=1024),
        lambda: y,
        expected,
    )


def reduce():
    out, x = torch.zeros(1, device="cuda"), numbers(N)
    programs = torch.cuda.get_device_properties("cuda").multi_processor_count * 8
    return (
        lambda: sum_kernel[(programs,)](out, x, N, BLOCK_SIZE=4096),
        lambda: out,
        x.sum(dtype=torch.float64).float().reshape(1),
    )


def softmax():
    y, x = torch.empty(ROWS, COLUMNS, device="cuda"), numbers(ROWS, COLUMNS)
    block = triton.next_power_of_2(COLUMNS)
    programs = torch.cuda.get_device_properties("cuda").multi_processor_count * 8
    forms = [
        lambda: softmax_row_kernel[(ROWS,)](y, x, COLUMNS, COLUMNS, BLOCK_SIZE=block, num_warps=16),
        lambda: softmax_rows_kernel[(programs,)](
            y, x, COLUMNS, ROWS, COLUMNS, BLOCK_SIZE=block, num_warps=8
        ),
    ]
    for form in forms:
        form()
    return (
        min(forms, key=lambda form: min(timed(form, 10) for _ in range(3))),
        lambda: y,
        torch.softmax(x, 1),
    )


def layer_norm():
    y, x, w, b = (
        torch.empty(ROWS, COLUMNS, device="cuda"),
        numbers(ROWS, COLUMNS),
        numbers(COLUMNS),
        numbers(COLUMNS),
    )
    block = min(65536 // x.element_size(), triton.next_power_of_2(COLUMNS))
    warps = min(max(block // 256, 1), 8)
    expected = torch.nn.functional.layer_norm(x, (COLUMNS,), w, b, EPS)
    return (
        lambda: layer_norm_kernel[(ROWS,)](
            y, x, w, b, COLUMNS, COLUMNS, EPS, BLOCK_SIZE=block, num_warps=warps
        ),
        lambda: y,
        expected,
    )


def rms_norm():
    y, x, w = torch.empty(ROWS, COLUMNS, device="cuda"), numbers(ROWS, COLUMNS), numbers(COLUMNS)
    block = triton.next_power_of_2(COLUMNS)
    warps = min(max(block // 256, 1), 8)
    expected = x * torch.rsqrt((x * x).mean(1, keepdim=True) + EPS) * w
    return (
        lambda: rms_norm_kernel[(ROWS,)](
            y, x, w, COLUMNS, COLUMNS, EPS, BLOCK_SIZE=block, num_warps=warps
        ),
        lambda: y,
        expected,
    )


KERNELS = {
    "saxpy": saxpy,
    "elementwise": elementwise,
    "reduce": reduce,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
}


def timed(launch, launches):
    """µs per launch"""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(launches):
        launch()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / launches


def kernel(_, name, samples, launches):
    """µs per launch, after one whose result is compared with PyTorch's"""
    launch, result, expected = KERNELS[name]()
    if name != "softmax":
        launch()
    torch.testing.assert_close(result(), expected, rtol=1e-4, atol=1e-5)
    timed(launch, int(launches))
    return {"samples": [timed(launch, int(launches)) for _ in range(int(samples))]}


try:
    torch.cuda.set_device(int(sys.argv[1]))
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(None, {"triton": triton.__version__, "torch": torch.__version__}, {"kernel": kernel})
