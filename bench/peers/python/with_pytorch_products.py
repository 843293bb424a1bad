"""Grouped products and convolutions in PyTorch: `python3 with_pytorch_products.py ORDINAL KERNELS_FOLDER`."""

import sys

from program import absent, serve

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    absent(error)
if not torch.cuda.is_available():
    absent("torch.cuda is not available")


def timed(samples, runs, call):
    """µs of the device for one call"""
    for _ in range(3):
        call()
    result = []
    for _ in range(int(samples)):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(int(runs)):
            call()
        end.record()
        end.synchronize()
        result.append(begin.elapsed_time(end) * 1e3 / int(runs))
    return {"samples": result}


def grouped(work, samples, runs, k, n, *ends):
    """rows of bf16 by the matrices of their groups, in one call"""
    if not hasattr(torch, "_grouped_mm"):
        raise RuntimeError("this PyTorch has no torch._grouped_mm")
    ends = [int(end) for end in ends]
    k, n = int(k), int(n)
    a = torch.randn((ends[-1], k), device="cuda", dtype=torch.bfloat16)
    b = torch.randn((len(ends), n, k), device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    offsets = torch.tensor(ends, device="cuda", dtype=torch.int32)
    return timed(samples, runs, lambda: torch._grouped_mm(a, b, offs=offsets))


def convolution(work, samples, runs, images, channels, side, results, weights, stride):
    """bf16 with channels last, with bias, by the fastest algorithm of cuDNN"""
    torch.backends.cudnn.benchmark = True
    channels, results, weights = int(channels), int(results), int(weights)
    last = {"memory_format": torch.channels_last}
    shape = (int(images), channels, int(side), int(side))
    x = torch.randn(shape, device="cuda", dtype=torch.bfloat16).to(**last)
    w = torch.randn((results, channels, weights, weights), device="cuda", dtype=torch.bfloat16)
    w = w.to(**last)
    bias = torch.randn(results, device="cuda", dtype=torch.bfloat16)
    return timed(
        samples,
        runs,
        lambda: F.conv2d(x, w, bias, stride=int(stride), padding=weights // 2),
    )


try:
    torch.cuda.set_device(int(sys.argv[1]))
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(
    None,
    {"torch": torch.__version__, "cuDNN": str(torch.backends.cudnn.version())},
    {"grouped": grouped, "convolution": convolution},
)
