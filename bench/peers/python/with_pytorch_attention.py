"""Attention in PyTorch: `python3 with_pytorch_attention.py ORDINAL KERNELS_FOLDER`.

Each backend of scaled_dot_product_attention that runs is measured; the samples are those of the
fastest one.
"""

import sys

from program import absent, serve

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    absent(error)
if not torch.cuda.is_available():
    absent("torch.cuda is not available")

BACKENDS = {
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
}


def fastest(samples, runs, batch, heads, length, channels, causal, prepare):
    """µs of the device for one call of what `prepare` makes of a forward pass and its operands"""
    samples, runs = int(samples), int(runs)
    shape = (int(batch), int(heads), int(length), int(channels))
    operands = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    best, notes = None, {}
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel(backend):
                call = prepare(
                    lambda *given: F.scaled_dot_product_attention(
                        *given, is_causal=causal == "true"
                    ),
                    operands,
                )
                for _ in range(2):
                    call()
                result = []
                for _ in range(samples):
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    begin.record()
                    for _ in range(runs):
                        call()
                    end.record()
                    end.synchronize()
                    result.append(begin.elapsed_time(end) * 1e3 / runs)
        except Exception as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        notes[f"{name} µs"] = sorted(result)[len(result) // 2]
        if best is None or sorted(result)[len(result) // 2] < sorted(best)[len(best) // 2]:
            best = result
    if best is None:
        raise RuntimeError("no backend runs")
    return {"samples": best, "notes": notes}


def attention(work, *sizes):
    return fastest(*sizes, lambda forward, operands: lambda: forward(*operands))


def attention_backward(work, *sizes):
    """the backward pass alone, of one forward pass"""

    def prepare(forward, operands):
        given = [each.detach().requires_grad_() for each in operands]
        out = forward(*given)
        gradient = torch.randn_like(out)
        return lambda: torch.autograd.grad(out, given, gradient, retain_graph=True)

    return fastest(*sizes, prepare)


try:
    torch.cuda.set_device(int(sys.argv[1]))
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(
    None,
    {"torch": torch.__version__, "cuDNN": str(torch.backends.cudnn.version())},
    {"attention": attention, "attention_backward": attention_backward},
)
