"""ResNet-50 in eager PyTorch: `python3 with_pytorch_resnet.py ORDINAL KERNELS_FOLDER`.

The weights are those of bench/inference/resnet50.ts, read in the order in which they are used.
JPEGs are in memory. They are decoded by torchvision or PIL, whichever is there, on as many threads
as there are cores, while batches before them are prepared on the GPU and run; or, as a measurement
of its own, by torchvision on the GPU, a batch at a time.
"""

import io
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from program import absent, now, serve

try:
    import numpy
    import torch
    import torch.nn.functional as F
except ImportError as error:
    absent(error)
if not torch.cuda.is_available():
    absent("torch.cuda is not available")

WIDTH, HEIGHT, SIDE = 640, 480, 224
STAGES = [(3, 64), (4, 128), (6, 256), (3, 512)]


def decoder():
    try:
        from torchvision.io import ImageReadMode, decode_jpeg

        return "torchvision", lambda data: decode_jpeg(data, ImageReadMode.RGB).permute(1, 2, 0)
    except Exception:
        pass
    try:
        from PIL import Image

        return "PIL", lambda data: torch.from_numpy(
            numpy.array(Image.open(io.BytesIO(data.numpy())).convert("RGB"))
        )
    except ImportError:
        return None, None


class ResNet:
    def __init__(self, ordinal):
        torch.cuda.set_device(ordinal)
        # TensorRT takes TF32 for f32 layers unless it is told otherwise; so may PyTorch.
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        self.decoded_by, self.decode = decoder()
        self.folder = None
        self.pool = ThreadPoolExecutor(os.cpu_count())

    def load(self, folder):
        if folder == self.folder:
            return
        values = torch.from_numpy(
            numpy.fromfile(os.path.join(folder, "weights.f32"), dtype=numpy.float32)
        ).cuda()
        self.taken = 0

        def take(*shape):
            size = 1
            for extent in shape:
                size *= extent
            part = values[self.taken : self.taken + size].reshape(shape).contiguous()
            self.taken += size
            return part

        def conv(cin, cout, k):
            return take(cout, cin, k, k), take(cout)

        self.stem = conv(3, 64, 7)
        self.blocks = []
        cin = 64
        for stage, (count, width) in enumerate(STAGES):
            for block in range(count):
                stride = 2 if block == 0 and stage > 0 else 1
                layers = [conv(cin, width, 1), conv(width, width, 3), conv(width, 4 * width, 1)]
                layers.append(conv(cin, 4 * width, 1) if block == 0 else None)
                self.blocks.append((stride, layers))
                cin = 4 * width
        self.classes = take(cin, 1000), take(1000)
        if self.taken != values.numel():
            raise RuntimeError(f"{values.numel()} weights, {self.taken} used")
        self.mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1)
        self.deviation = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1)
        names = sorted(name for name in os.listdir(folder) if name.endswith(".jpg"))
        self.files = [
            torch.from_numpy(numpy.fromfile(os.path.join(folder, name), dtype=numpy.uint8))
            for name in names
        ]
        pixels = numpy.fromfile(os.path.join(folder, "pixels.u8"), dtype=numpy.uint8)
        self.pixels = torch.from_numpy(pixels).reshape(-1, HEIGHT, WIDTH, 3)
        self.folder = folder

    def __call__(self, photographs):
        """The classes of [N, H, W, 3] of u8 on the host, left on the GPU."""
        return self.classify(photographs.pin_memory().cuda(non_blocking=True).permute(0, 3, 1, 2))

    def classify(self, photographs):
        """The classes of [N, 3, H, W] of u8 on the GPU."""
        x = photographs.float()
        height = HEIGHT * SIDE // WIDTH
        x = F.interpolate(x, size=(height, SIDE), mode="bilinear", align_corners=False)
        above = (SIDE - height) // 2
        x = F.pad(x, (0, 0, above, SIDE - height - above), value=114)
        x = (x / 255 - self.mean) / self.deviation
        x = F.max_pool2d(F.relu(F.conv2d(x, *self.stem, stride=2, padding=3)), 3, 2, 1)
        for stride, (a, b, c, shortcut) in self.blocks:
            y = F.relu(F.conv2d(x, *a))
            y = F.relu(F.conv2d(y, *b, stride=stride, padding=1))
            y = F.conv2d(y, *c)
            x = F.relu(y + (x if shortcut is None else F.conv2d(x, *shortcut, stride=stride)))
        weight, bias = self.classes
        return torch.addmm(bias, x.mean((2, 3)), weight).argmax(1)


def rate(work, count, start, classes):
    labels = torch.cat([each.cpu() for each in classes])
    seconds = (now() - start) / 1e6
    # As ours: the classes of the different photographs, as one number.
    return {"samples": [count / seconds], "notes": {"classes": int(labels[:64].sum())}}


def from_files(work, folder, count, batch):
    """photographs per second, from JPEG files"""
    count, batch = int(count), int(batch)
    work.load(folder)
    if work.decode is None:
        raise RuntimeError("neither torchvision nor PIL is there to decode photographs")
    with torch.no_grad():
        work(work.pixels[:batch])
        torch.cuda.synchronize()
        start = now()
        decoded = [
            work.pool.submit(work.decode, work.files[i % len(work.files)]) for i in range(count)
        ]
        classes = [
            work(torch.stack([each.result() for each in decoded[i : i + batch]]))
            for i in range(0, count, batch)
        ]
        return rate(work, count, start, classes)


def from_files_on_gpu(work, folder, count, batch):
    """photographs per second, from JPEG files that torchvision decodes on the GPU"""
    from torchvision.io import ImageReadMode, decode_jpeg

    count, batch = int(count), int(batch)
    work.load(folder)

    def decoded(first, end):
        return torch.stack(
            decode_jpeg(
                [work.files[i % len(work.files)] for i in range(first, end)],
                ImageReadMode.RGB,
                device="cuda",
            )
        )

    with torch.no_grad():
        work.classify(decoded(0, batch))
        torch.cuda.synchronize()
        start = now()
        return rate(
            work,
            count,
            start,
            [work.classify(decoded(i, min(i + batch, count))) for i in range(0, count, batch)],
        )


def from_pixels(work, folder, count, batch):
    """photographs per second, from pixels in the host's memory"""
    count, batch = int(count), int(batch)
    work.load(folder)
    with torch.no_grad():
        work(work.pixels[:batch])
        torch.cuda.synchronize()
        start = now()
        at = [
            [(i + k) % len(work.pixels) for k in range(min(batch, count - i))]
            for i in range(0, count, batch)
        ]
        return rate(work, count, start, [work(work.pixels[each]) for each in at])


try:
    work = ResNet(int(sys.argv[1]))
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(
    work,
    {"torch": torch.__version__, "decoder": str(work.decoded_by)},
    {"files": from_files, "files-on-gpu": from_files_on_gpu, "pixels": from_pixels},
)
