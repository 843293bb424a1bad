"""The launch benchmarks with PyTorch: `python3 with_pytorch.py ORDINAL KERNELS_FOLDER`.

PyTorch launches its own kernels only, so what is measured is the cheapest of them: adding a number
to 32 floats in place. It always counts.
"""

import sys

from program import Work, absent, serve

try:
    import torch
except ImportError as error:
    absent(error)
if not torch.cuda.is_available():
    absent("torch.cuda is not available")


class PyTorch(Work):
    def __init__(self, ordinal):
        torch.cuda.set_device(ordinal)
        self.counter = torch.zeros(32, device="cuda")

    def launch(self, n):
        self.counter.add_(1)

    def launches(self, count, n):
        counter = self.counter
        for _ in range(count):
            counter.add_(1)

    def sync(self):
        torch.cuda.synchronize()

    def reset(self):
        self.counter.zero_()

    def counted(self):
        return self.counter[0].item()


try:
    work = PyTorch(int(sys.argv[1]))
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(work, {"torch": torch.__version__})
