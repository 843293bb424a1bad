"""Rasterises the demo's typeface: one grey PNG per size (16 x 6 cells, coverage 0 to 255) and
metrics.json.

The typeface is Aileron Regular by Sora Sagano (CC0), as Pillow carries it. Run with Pillow 10.1 or
later, built with FreeType; the results are committed, so this is needed only to add a size or a
character.
"""

import json
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

CHARACTERS = "".join(map(chr, range(32, 127))) + "·"
COLUMNS = 16
SIZES = (18, 24, 40)

here = Path(__file__).parent
sizes = {}
for size in SIZES:
    font = ImageFont.load_default(size)
    ascent, descent = font.getmetrics()
    # A glyph may reach left of its origin or right of its advance (j, f): the cell leaves room on
    # both sides.
    margin = size // 6
    width = max(font.getbbox(c)[2] for c in CHARACTERS) + 2 * margin
    height = ascent + descent
    atlas = Image.new("L", (width * COLUMNS, height * -(-len(CHARACTERS) // COLUMNS)), 0)
    draw = ImageDraw.Draw(atlas)
    for i, c in enumerate(CHARACTERS):
        draw.text((i % COLUMNS * width + margin, i // COLUMNS * height), c, 255, font=font)
    atlas.save(here / f"aileron-{size}.png", optimize=True)
    advances = [round(font.getlength(c)) for c in CHARACTERS]
    sizes[size] = {
        "cellWidth": width,
        "cellHeight": height,
        "margin": margin,
        "ascent": ascent,
        "advances": advances,
    }

(here / "metrics.json").write_text(
    json.dumps({"characters": CHARACTERS, "columns": COLUMNS, "sizes": sizes}) + "\n"
)
