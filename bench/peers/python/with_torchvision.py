"""Photographs made smaller with PyTorch and torchvision: `python3 with_torchvision.py ORDINAL
KERNELS_FOLDER`.

uint8, bilinear, without antialiasing: what our `linear` does. Timed by the device's events.
`packed` images lie as ours do (channels last), `planar` ones as PyTorch has them by default.
"""

import sys

from program import absent, serve

try:
    import torch
    from torch.nn.functional import interpolate
except ImportError as error:
    absent(error)
try:
    import torchvision
    from torchvision.transforms.v2 import InterpolationMode
    from torchvision.transforms.v2.functional import resize
except Exception as error:
    torchvision, why = None, error
if not torch.cuda.is_available():
    absent("torch.cuda is not available")

FROM, TO = (1080, 1920), (640, 640)


class Photographs:
    """What is resized: noise, the same number of images as in the round before where nothing
    changed."""

    def __init__(self, ordinal):
        torch.cuda.set_device(ordinal)
        self.key = None

    def get(self, count, layout):
        if self.key != (count, layout):
            self.key = (count, layout)
            images = torch.randint(0, 256, (count, 3, *FROM), dtype=torch.uint8, device="cuda")
            self.images = (
                images.contiguous(memory_format=torch.channels_last)
                if layout == "packed"
                else images
            )
        return self.images


def measured(photographs, run, samples, images, repeat, layout):
    given = photographs.get(int(images), layout)
    with torch.inference_mode():
        result = run(given)
        if result.dtype != torch.uint8 or tuple(result.shape) != (int(images), 3, *TO):
            raise RuntimeError(f"{result.dtype} of {tuple(result.shape)}")
        means = result.float().mean(dim=(1, 3))
        if not (means.min() > 110 and means.max() < 145):
            raise RuntimeError(f"rows have means from {means.min().item()} to {means.max().item()}")
        for _ in range(3):
            run(given)
        took = []
        for _ in range(int(samples)):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(int(repeat)):
                run(given)
            end.record()
            end.synchronize()
            took.append(begin.elapsed_time(end) / int(repeat))
    return {"samples": took}


def interpolated(photographs, samples, images, repeat, layout):
    """ms of torch.nn.functional.interpolate of so many images"""
    return measured(
        photographs,
        lambda x: interpolate(x, size=TO, mode="bilinear", align_corners=False, antialias=False),
        samples,
        images,
        repeat,
        layout,
    )


def resized(photographs, samples, images, repeat, layout):
    """ms of torchvision.transforms.v2.functional.resize of so many images"""
    if torchvision is None:
        raise RuntimeError(f"no torchvision: {why}")
    return measured(
        photographs,
        lambda x: resize(x, list(TO), interpolation=InterpolationMode.BILINEAR, antialias=False),
        samples,
        images,
        repeat,
        layout,
    )


try:
    work = Photographs(int(sys.argv[1]))
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(
    work,
    {"torch": torch.__version__, "torchvision": torchvision.__version__ if torchvision else "none"},
    {"interpolate": interpolated, "resize": resized},
)
