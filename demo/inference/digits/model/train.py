"""Trains digits.onnx, the demo's detector of printed digits, and draws the demo's photographs.

    pip install jax pillow onnx
    python train.py data   FONTS...         # pictures to learn from, into data.npz
    python train.py train  [STEPS]          # weights.npz, from data.npz; goes on from weights.npz
                                            # where there is one
    python train.py export                  # digits.onnx, from weights.npz
    python train.py photographs             # ../photographs/*.jpg and what is on them, truth.json

Nothing is downloaded: the model learns from the demo's own photograph
(../../../images/coffee.png, CC0), of plain and striped grounds, and of digits and letters in the
fonts that are named. The typeface of the demo's photographs (Aileron, which Pillow carries) is not
among them.
"""

import json
import math
import os
import random
import sys

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageEnhance, ImageFilter, ImageFont

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = os.environ.get('WORK', HERE)
COFFEE = os.path.join(HERE, '..', '..', '..', 'images', 'coffee.png')
CROP = 128  # pictures to learn from
PATCH = 64  # what of them is looked at in a step; the model takes any multiple of 16, the demo 256
STRIDE = 4
LETTERS = 'ABCDEFGHKLMNPRTUVWXYabcdefhkmnprtuvwxyz#%&?+=-/'


# -- pictures --------------------------------------------------------------------------------------


def color(rng):
    return tuple(rng.randrange(256) for _ in range(3))


def contrasting(rng, ground):
    """A colour that differs from the ground's enough to be read."""
    while True:
        it = color(rng)
        if abs(luma(it) - luma(ground)) > 70:
            return it


def luma(rgb):
    return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]


def background(rng, photo, size):
    kind = rng.random()
    if kind < 0.75:
        scale = rng.uniform(size / 400, 1.2) if size < 400 else 1
        side = min(400, max(24, int(size / scale)))
        x, y = rng.randrange(600 - side + 1), rng.randrange(400 - side + 1)
        it = photo.crop((x, y, x + side, y + side)).resize((size, size), Image.BILINEAR)
        if rng.random() < 0.5:
            it = it.transpose(Image.FLIP_LEFT_RIGHT)
        it = it.rotate(90 * rng.randrange(4))
    elif kind < 0.85:
        it = Image.new('RGB', (size, size), color(rng))
        draw = ImageDraw.Draw(it)
        for _ in range(rng.randrange(1, 14)):
            x, y, w = rng.randrange(size), rng.randrange(size), rng.randrange(1, 8)
            if rng.random() < 0.6:
                draw.line((x, y, rng.randrange(size), rng.randrange(size)), color(rng), w)
            else:
                r = rng.randrange(3, 40)
                (draw.ellipse if rng.random() < 0.5 else draw.rectangle)(
                    (x - r, y - r, x + r, y + r),
                    None if rng.random() < 0.5 else color(rng),
                    color(rng),
                    w,
                )
    else:
        a, b = np.array(color(rng), float), np.array(color(rng), float)
        angle = rng.uniform(0, 2 * math.pi)
        yy, xx = np.mgrid[0:size, 0:size] / size - 0.5
        t = np.clip(xx * math.cos(angle) + yy * math.sin(angle) + 0.5, 0, 1)[..., None]
        it = Image.fromarray((a * t + b * (1 - t)).astype(np.uint8))
    if rng.random() < 0.5:
        it = ImageEnhance.Color(it).enhance(rng.uniform(0, 2))
        it = ImageEnhance.Brightness(it).enhance(rng.uniform(0.4, 1.6))
    return it


def write(rng, picture, font, text, height, place, tilt, card, ink):
    """Writes `text` with its middle at `place`; gives back (digit, left, top, right, bottom) of
    each digit that is in it."""
    widths = [font.getlength(text[: i + 1]) for i in range(len(text))]
    # Set large and turned about the middle, each sign on a layer of its own: its box is that of its
    # turned ink.
    w, h = picture.size
    left = place[0] - widths[-1] / 2
    ascent = font.getbbox('0', anchor='ls')
    base = place[1] - (ascent[1] + ascent[3]) / 2
    shear = rng.uniform(-0.15, 0.15) if tilt else 0
    cos, sin = math.cos(tilt), math.sin(tilt)

    def turned(layer):
        # From the result's pixel to the layer's: turn back, then shear.
        cx, cy = place
        a, b, d, e = cos + shear * -sin, sin + shear * cos, -sin, cos
        return layer.transform(
            (w, h),
            Image.AFFINE,
            (a, b, cx - a * cx - b * cy, d, e, cy - d * cx - e * cy),
            Image.BICUBIC,
        )

    if card is not None:
        layer = Image.new('L', (w, h), 0)
        pad_x, pad_y = rng.uniform(0.15, 0.7) * height, rng.uniform(0.15, 0.5) * height
        box = (
            left - pad_x,
            place[1] - height / 2 - pad_y,
            left + widths[-1] + pad_x,
            place[1] + height / 2 + pad_y,
        )
        ImageDraw.Draw(layer).rounded_rectangle(box, rng.uniform(0, 0.4) * height, 255)
        picture.paste(card, (0, 0), turned(layer))
    found = []
    whole = Image.new('L', (w, h), 0)
    for i, sign in enumerate(text):
        layer = Image.new('L', (w, h), 0)
        ImageDraw.Draw(layer).text(
            (left + (widths[i - 1] if i else 0), base), sign, 255, font, anchor='ls'
        )
        layer = turned(layer)
        whole = ImageChops.lighter(whole, layer)
        box = layer.point(lambda v: 255 if v > 100 else 0).getbbox()
        if sign.isdigit() and box is not None:
            found.append((int(sign), *box))
    picture.paste(ink, (0, 0), whole)
    return found


def overlaps(box, others):
    return any(box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3] for o in others)


def scene(rng, photo, fonts):
    picture = background(rng, photo, CROP)
    digits, taken = [], []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        height = int(math.exp(rng.uniform(math.log(10), math.log(36))))
        name = rng.choice(fonts)
        font = ImageFont.truetype(name, int(height / 0.72))
        letters = rng.random() < 0.25
        length = rng.randrange(1, 5) if height < 36 else rng.randrange(1, 3)
        text = ''.join(
            rng.choice(LETTERS if letters or rng.random() < 0.08 else '0123456789')
            for _ in range(length)
        )
        width = font.getlength(text)
        reach = (width / 2 + 0.8 * height, 1.1 * height)
        place = (rng.uniform(0.1 * CROP, 0.9 * CROP), rng.uniform(0.1 * CROP, 0.9 * CROP))
        box = (place[0] - reach[0], place[1] - reach[1], place[0] + reach[0], place[1] + reach[1])
        if overlaps(box, taken):
            continue
        taken.append(box)
        card = color(rng) if rng.random() < 0.65 else None
        if card is not None:
            ink = contrasting(rng, card)
        else:
            x, y = min(CROP - 1, int(place[0])), min(CROP - 1, int(place[1]))
            around = (
                picture.crop((max(0, x - 20), max(0, y - 20), x + 20, y + 20))
                .resize((1, 1), Image.BOX)
                .getpixel((0, 0))
            )
            ink = contrasting(rng, around)
        digits += write(
            rng, picture, font, text, height, place, rng.choice((0, rng.gauss(0, 0.15))), card, ink
        )
    if rng.random() < 0.3:
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.9)))
    return picture, digits


def data(fonts, count):
    rng = random.Random(7)
    photo = Image.open(COFFEE).convert('RGB')
    pictures = np.zeros((count, CROP, CROP, 3), np.uint8)
    boxes = np.full((count, 16, 5), -1, np.float32)
    for i in range(count):
        picture, digits = scene(rng, photo, fonts)
        pictures[i] = np.asarray(picture)
        for k, digit in enumerate(digits[:16]):
            boxes[i, k] = digit
    np.savez(os.path.join(WORK, 'data.npz'), pictures=pictures, boxes=boxes)
    sheet = Image.new('RGB', (CROP * 8, CROP * 4))
    for i in range(32):
        it = Image.fromarray(pictures[i])
        draw = ImageDraw.Draw(it)
        for digit in boxes[i]:
            if digit[0] >= 0:
                draw.rectangle(tuple(digit[1:]), outline=(255, 0, 0))
        sheet.paste(it, (i % 8 * CROP, i // 8 * CROP))
    sheet.save(os.path.join(WORK, 'sheet.png'))


# -- model -----------------------------------------------------------------------------------------

# name: (kernel, stride, dilation, from, to). Residual blocks are two of these; `up` joins the
# coarse map to the fine one.
LAYERS = {
    'stem': (3, 2, 1, 3, 12),
    'down4': (3, 2, 1, 12, 24),
    'a1': (3, 1, 1, 24, 24),
    'a2': (3, 1, 1, 24, 24),
    'down8': (3, 2, 1, 24, 48),
    'b1': (3, 1, 1, 48, 48),
    'b2': (3, 1, 1, 48, 48),
    'c1': (3, 1, 2, 48, 48),
    'c2': (3, 1, 2, 48, 48),
    'down16': (3, 2, 1, 48, 64),
    'd1': (3, 1, 1, 64, 64),
    'd2': (3, 1, 1, 64, 64),
    'lift16': (1, 1, 1, 64, 48),
    'lift8': (1, 1, 1, 48, 24),
    'e1': (3, 1, 1, 24, 32),
    'e2': (3, 1, 1, 32, 48),
    'scores': (1, 1, 1, 48, 10),
    'sides': (1, 1, 1, 48, 4),
}


def initial():
    rng = np.random.default_rng(1)
    weights = {}
    for name, (k, _, _, cin, cout) in LAYERS.items():
        weights[name + '.w'] = (
            rng.standard_normal((k, k, cin, cout)) * math.sqrt(2 / (k * k * cin))
        ).astype(np.float32)
        weights[name + '.b'] = np.full(cout, -4 if name == 'scores' else 0, np.float32)
        if name in ('a2', 'b2', 'c2', 'd2'):
            weights[name + '.w'] *= 0.3
    weights['scores.w'] *= 0.1
    weights['sides.w'] *= 0.1
    return weights


def forward(jnp, weights, x):
    """Pixels [N, H, W, 3] from -1 to 1; scores before the sigmoid, and logarithms of the sides'
    distances by 8 pixels."""

    def conv(name, x):
        k, stride, dilation, _, cout = LAYERS[name]
        w = weights[name + '.w']
        if k == 1:
            return x @ w[0, 0] + weights[name + '.b']
        # As a product of the shifted pictures with the kernel: JAX's own gradients of convolutions
        # are slow on processors.
        n, h, v, _ = x.shape
        p = jnp.pad(x, ((0, 0), (dilation, dilation), (dilation, dilation), (0, 0)))
        parts = [
            p[:, i * dilation : i * dilation + h : stride, j * dilation : j * dilation + v : stride]
            for i in range(3)
            for j in range(3)
        ]
        return jnp.concatenate(parts, -1) @ w.reshape(-1, cout) + weights[name + '.b']

    relu = lambda x: jnp.maximum(x, 0)
    block = lambda a, b, x: relu(x + conv(b, relu(conv(a, x))))
    twice = lambda x: jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
    x = relu(conv('stem', x))
    fine = block('a1', 'a2', relu(conv('down4', x)))
    middle = block('c1', 'c2', block('b1', 'b2', relu(conv('down8', fine))))
    coarse = block('d1', 'd2', relu(conv('down16', middle)))
    middle = relu(middle + twice(conv('lift16', coarse)))
    x = relu(fine + twice(conv('lift8', middle)))
    x = relu(conv('e2', relu(conv('e1', x))))
    return conv('scores', x), conv('sides', x)


def targets(jnp, boxes):
    """From boxes [N, 16, 5]: heat [N, h, w, 10], sides [N, h, w, 4], and where the sides count
    [N, h, w, 1]."""
    side = PATCH // STRIDE
    at = (jnp.arange(side) + 0.5) * STRIDE
    label, left, top, right, bottom = (boxes[..., i][:, :, None, None] for i in range(5))
    y, x = at[None, None, :, None], at[None, None, None, :]
    there = label >= 0
    cx, cy, w, h = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
    # The cell with the middle is the positive example; cells near it count less as negative ones.
    own = there & (jnp.abs(x - cx) <= STRIDE / 2) & (jnp.abs(y - cy) <= STRIDE / 2)
    spread = jnp.exp(
        -(
            ((x - cx) / (0.18 * jnp.maximum(w, 8))) ** 2
            + ((y - cy) / (0.18 * jnp.maximum(h, 8))) ** 2
        )
        / 2
    )
    heat = jnp.where(own, 1, jnp.where(there, spread * 0.98, 0))
    kind = (label[..., None] == jnp.arange(10)).astype(jnp.float32)
    heat = jnp.max(heat[..., None] * kind, 1)
    near = (
        there
        & (jnp.abs(x - cx) <= jnp.maximum(w / 4, STRIDE / 2))
        & (jnp.abs(y - cy) <= jnp.maximum(h / 4, STRIDE / 2))
    )
    gap = lambda v: jnp.log(jnp.maximum(v, 1) / 8)
    sides = jnp.stack(
        jnp.broadcast_arrays(gap(x - left), gap(y - top), gap(right - x), gap(bottom - y)), -1
    )
    weight = near[..., None].astype(jnp.float32)
    total = weight.sum(1)
    return heat, (sides * weight).sum(1) / jnp.maximum(total, 1), jnp.minimum(total, 1)


def patch(rng, picture, boxes):
    """A part of a picture, mostly one with a digit in it, and the digits whose middles lie
    there."""
    there = boxes[boxes[:, 0] >= 0]
    if len(there) > 0 and rng.random() < 0.85:
        _, left, top, right, bottom = there[rng.integers(len(there))]
        x, y = (left + right) / 2 + rng.uniform(-24, 24), (top + bottom) / 2 + rng.uniform(-24, 24)
    else:
        x, y = rng.uniform(0, CROP, 2)
    x, y = (int(np.clip(v - PATCH / 2, 0, CROP - PATCH)) for v in (x, y))
    moved = there - np.array([0, x, y, x, y], np.float32)
    middle = np.stack([(moved[:, 1] + moved[:, 3]) / 2, (moved[:, 2] + moved[:, 4]) / 2], -1)
    moved = moved[np.all((middle > 0) & (middle < PATCH), -1)]
    found = np.full((16, 5), -1, np.float32)
    found[: len(moved)] = moved
    return picture[y : y + PATCH, x : x + PATCH], found


def train(steps):
    import jax
    import jax.numpy as jnp

    stored = np.load(os.path.join(WORK, 'data.npz'))
    pictures, boxes = stored['pictures'], stored['boxes']
    path = os.path.join(WORK, 'weights.npz')
    weights = dict(np.load(path)) if os.path.exists(path) else initial()
    weights = {k: jnp.asarray(v) for k, v in weights.items()}
    batch = 32

    def loss(weights, x, b):
        scores, sides = forward(jnp, weights, x)
        heat, wanted, weight = targets(jnp, b)
        p = jax.nn.sigmoid(scores)
        log_p, log_q = jax.nn.log_sigmoid(scores), jax.nn.log_sigmoid(-scores)
        full = heat >= 1
        focal = -jnp.where(full, (1 - p) ** 2 * log_p, (1 - heat) ** 4 * p**2 * log_q).sum()
        count = jnp.maximum(full.sum(), 1)
        return focal / count + 1.0 * (jnp.abs(sides - wanted) * weight).sum() / jnp.maximum(
            4 * weight.sum(), 1
        )

    @jax.jit
    def step(weights, m, v, t, x, b, rate):
        value, g = jax.value_and_grad(loss)(weights, x, b)
        norm = jnp.sqrt(sum((a**2).sum() for a in g.values()))
        g = {k: a * jnp.minimum(1, 5 / norm) for k, a in g.items()}
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in g}
        v = {k: 0.98 * v[k] + 0.02 * g[k] ** 2 for k in g}
        move = (
            lambda k: m[k] / (1 - 0.9**t) / (jnp.sqrt(v[k] / (1 - 0.98**t)) + 1e-8)
            + 1e-4 * weights[k]
        )
        return {k: weights[k] - rate * move(k) for k in g}, m, v, value

    m = {k: jnp.zeros_like(a) for k, a in weights.items()}
    v = dict(m)
    rng = np.random.default_rng(
        int.from_bytes(os.urandom(4), 'little') if os.path.exists(path) else 3
    )
    seen = []
    for t in range(1, steps + 1):
        pick = rng.integers(len(pictures), size=batch)
        x = np.zeros((batch, PATCH, PATCH, 3), np.float32)
        b = np.full((batch, 16, 5), -1, np.float32)
        for i, at in enumerate(pick):
            x[i], b[i] = patch(rng, pictures[at], boxes[at])
        x = x * rng.uniform(0.6, 1.3, (batch, 1, 1, 3)) + rng.uniform(-30, 30, (batch, 1, 1, 3))
        x += rng.standard_normal(x.shape, dtype=np.float32) * rng.uniform(0, 10, (batch, 1, 1, 1))
        x = np.where(rng.random((batch, 1, 1, 1)) < 0.15, 255 - x, x)[..., rng.permutation(3)]
        x = (np.clip(x, 0, 255) / 127.5 - 1).astype(np.float32)
        rate = 2e-3 * min(1, t / 100) * (0.5 + 0.5 * math.cos(math.pi * t / steps)) + 1e-5
        weights, m, v, value = step(weights, m, v, jnp.float32(t), x, b, jnp.float32(rate))
        seen.append(float(value))
        if t % 50 == 0:
            print(t, round(float(np.mean(seen[-50:])), 4), flush=True)
        if t % 250 == 0 or t == steps:
            np.savez(path, **{k: np.asarray(a) for k, a in weights.items()})


# -- ONNX ------------------------------------------------------------------------------------------


def export():
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.load(os.path.join(WORK, 'weights.npz'))
    nodes, held = [], []

    def constant(name, values):
        held.append(numpy_helper.from_array(values, name))
        return name

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def conv(name, x, relu=False):
        k, stride, dilation, _, _ = LAYERS[name]
        w = constant(name + '.w', np.ascontiguousarray(weights[name + '.w'].transpose(3, 2, 0, 1)))
        b = constant(name + '.b', weights[name + '.b'])
        pad = dilation if k == 3 else 0
        y = node(
            'Conv',
            [x, w, b],
            name,
            kernel_shape=[k, k],
            strides=[stride] * 2,
            dilations=[dilation] * 2,
            pads=[pad] * 4,
        )
        return node('Relu', [y], name + '.relu') if relu else y

    def block(a, b, x):
        return node('Relu', [node('Add', [x, conv(b, conv(a, x, True))], b + '.sum')], b + '.relu')

    scale = constant('twice', np.array([1, 1, 2, 2], np.float32))

    def joined(fine, name, coarse):
        up = node(
            'Resize',
            [conv(name, coarse), '', scale],
            name + '.up',
            mode='nearest',
            coordinate_transformation_mode='asymmetric',
            nearest_mode='floor',
        )
        return node('Relu', [node('Add', [fine, up], name + '.sum')], name + '.relu')

    fine = block('a1', 'a2', conv('down4', conv('stem', 'image', True), True))
    middle = block('c1', 'c2', block('b1', 'b2', conv('down8', fine, True)))
    coarse = block('d1', 'd2', conv('down16', middle, True))
    x = joined(fine, 'lift8', joined(middle, 'lift16', coarse))
    x = conv('e2', conv('e1', x, True), True)
    node('Sigmoid', [conv('scores', x)], 'digits')
    node(
        'Mul',
        [node('Exp', [conv('sides', x)], 'sides.exp'), constant('eight', np.array(8, np.float32))],
        'distances',
    )
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(
        nodes,
        'digits',
        [value('image', ['batch', 3, 256, 256])],
        [value('digits', ['batch', 10, 64, 64]), value('distances', ['batch', 4, 64, 64])],
        held,
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid('', 17)],
        producer_name='async-cuda demo',
        ir_version=8,
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, os.path.join(HERE, 'digits.onnx'))
    print(os.path.getsize(os.path.join(HERE, 'digits.onnx')), 'bytes')


# -- the demo's photographs ------------------------------------------------------------------------

PHOTOGRAPHS = {
    # name: [(text, height, x, y, degrees, card, ink)]
    'menu': [
        ('1', 44, 70, 70, 6, (250, 248, 240), (20, 20, 24)),
        ('27', 40, 500, 75, -8, (200, 40, 30), (255, 255, 255)),
        ('350', 34, 300, 350, 3, (24, 60, 120), (250, 240, 200)),
    ],
    'table': [
        ('4096', 48, 300, 60, 0, (255, 214, 64), (30, 30, 30)),
        ('8', 56, 540, 330, 10, (255, 255, 255), (180, 20, 40)),
        ('12', 30, 70, 340, -12, (40, 44, 52), (130, 230, 160)),
    ],
    'label': [
        ('5', 44, 90, 300, -4, (236, 232, 220), (40, 40, 48)),
        ('639', 40, 440, 60, 5, (20, 120, 110), (255, 255, 255)),
        ('70', 26, 300, 210, 0, (245, 245, 245), (60, 40, 20)),
    ],
    'tickets': [
        ('84', 44, 140, 60, 0, (250, 248, 240), (90, 50, 20)),
        ('3', 52, 520, 80, 8, (60, 30, 90), (255, 240, 120)),
        ('29', 36, 470, 350, -5, (30, 90, 60), (255, 255, 255)),
        ('15', 38, 90, 340, 4, (250, 250, 250), (200, 60, 20)),
    ],
}
VIEWS = {'menu': (0, 1.0), 'table': (1, 1.1), 'label': (0, 0.85), 'tickets': (1, 1.2)}


def photographs():
    rng = random.Random(5)
    folder = os.path.join(HERE, '..', 'photographs')
    os.makedirs(folder, exist_ok=True)
    truth = {}
    for name, texts in PHOTOGRAPHS.items():
        mirrored, bright = VIEWS[name]
        picture = ImageEnhance.Brightness(Image.open(COFFEE).convert('RGB')).enhance(bright)
        if mirrored:
            picture = picture.transpose(Image.FLIP_LEFT_RIGHT)
        found = []
        for text, height, x, y, degrees, card, ink in texts:
            font = ImageFont.load_default(int(height / 0.72))
            found += write(
                rng, picture, font, text, height, (x, y), math.radians(degrees), card, ink
            )
        picture.filter(ImageFilter.GaussianBlur(0.5)).save(
            os.path.join(folder, name + '.jpg'), quality=88
        )
        truth[name + '.jpg'] = [
            {'label': str(label), 'box': list(map(int, box))} for label, *box in found
        ]
    with open(os.path.join(folder, 'truth.json'), 'w') as file:
        file.write(
            '{\n'
            + ',\n'.join(
                f'  {json.dumps(name)}: [\n'
                + ',\n'.join('    ' + json.dumps(digit) for digit in digits)
                + '\n  ]'
                for name, digits in truth.items()
            )
            + '\n}\n'
        )


if __name__ == '__main__':
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == 'data':
        data(arguments, 6000)
    elif command == 'train':
        train(int(arguments[0]) if arguments else 3000)
    else:
        {'export': export, 'photographs': photographs}[command]()
