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
# Flash takes no mask.
BACKENDS_WITH_MASK = {
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def random(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def timed(call, samples, runs):
    """µs of the device for one call, `samples` times"""
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
    return result


def fastest(samples, runs, batch, heads, length, channels, causal, masked, prepare):
    """µs of the device for one call of what `prepare` makes of a forward pass and its operands"""
    operands = [random(int(batch), int(heads), int(length), int(channels)) for _ in range(3)]
    mask = random(int(length), int(length)) if masked == "true" else None
    best, notes = None, {}
    for name, backend in (BACKENDS if mask is None else BACKENDS_WITH_MASK).items():
        try:
            with sdpa_kernel(backend):
                call = prepare(
                    lambda *given: F.scaled_dot_product_attention(
                        *given, attn_mask=mask, is_causal=causal == "true"
                    ),
                    operands,
                )
                result = timed(call, int(samples), int(runs))
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
    return fastest(*sizes_of(sizes), lambda forward, operands: lambda: forward(*operands))


def attention_backward(work, *sizes):
    """the backward pass alone, of one forward pass"""

    def prepare(forward, operands):
        given = [each.detach().requires_grad_() for each in operands]
        out = forward(*given)
        gradient = torch.randn_like(out)
        return lambda: torch.autograd.grad(out, given, gradient, retain_graph=True)

    return fastest(*sizes_of(sizes), prepare)


def sizes_of(sizes):
    """a request's sizes, the last of which may be left out: whether there is a mask"""
    return sizes if len(sizes) == 8 else (*sizes, "false")


def attention_packed(work, samples, runs, heads, channels, lengths):
    """causal attention of packed sequences, by flash"""
    lengths = [int(each) for each in lengths.split(",")]
    q, k, v = (random(sum(lengths), int(heads), int(channels)) for _ in range(3))
    ends = torch.tensor([0, *lengths], device="cuda").cumsum(0).to(torch.int32)
    most = max(lengths)
    call = lambda: torch.ops.aten._flash_attention_forward(
        q, k, v, ends, ends, most, most, 0.0, True, False
    )
    return {"samples": timed(call, int(samples), int(runs)), "notes": {}}


try:
    torch.cuda.set_device(int(sys.argv[1]))
except Exception as error:
    absent(f"{type(error).__name__}: {error}")
serve(
    None,
    {"torch": torch.__version__, "cuDNN": str(torch.backends.cudnn.version())},
    {
        "attention": attention,
        "attention_backward": attention_backward,
        "attention_packed": attention_packed,
    },
)
