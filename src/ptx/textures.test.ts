// Textures and surfaces against a sampler written from the CUDA programming guide, "Texture
// Fetching", and, where the guide leaves something open, from an H200's results.

import * as fc from '../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { FAULT, TEXTURE, TEXTURE_KIND, TEXTURE_MAGIC } from './index.js';
import { Grid, kernelText } from './run-grid.test-support.js';
import { weightsOf } from './texture-weights.test-support.js';

interface Image {
  width: number;
  height: number;
  depth: number;
  channels: number;
  /** CUarray_format */
  format: number;
  bytes: Uint8Array;
  texelBytes: number;
}

interface Sampling {
  normalized?: boolean;
  linear?: boolean;
  /** CUaddress_mode */
  modes?: readonly [number, number, number];
  integer?: boolean;
  srgb?: boolean;
  border?: readonly [number, number, number, number];
  layered?: boolean;
  buffer?: boolean;
}

const [WRAP, CLAMP, MIRROR, BORDER] = [0, 1, 2, 3] as const;

function floats(
  width: number,
  height: number,
  depth: number,
  channels: number,
  value: (x: number, y: number, z: number, c: number) => number,
): Image {
  const data = new Float32Array(width * height * depth * channels);
  for (let z = 0, at = 0; z < depth; z++)
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++)
        for (let c = 0; c < channels; c++) data[at++] = value(x, y, z, c);
  return {
    width,
    height,
    depth,
    channels,
    format: 0x20,
    bytes: new Uint8Array(data.buffer),
    texelBytes: channels * 4,
  };
}

const describeImage = (
  grid: Grid,
  image: Image,
  sampling: Sampling,
  kind: number,
): { handle: number; data: Uint8Array } => {
  const handle = grid.allocate(TEXTURE.bytes, 128);
  // The pitch is larger than a row, so that a test notices if the two are confused.
  const pitch = image.width * image.texelBytes + 32;
  const data = grid.allocate(pitch * image.height * image.depth);
  const row = image.width * image.texelBytes;
  for (let line = 0; line < image.height * image.depth; line++)
    grid.bytes().set(image.bytes.subarray(line * row, (line + 1) * row), data + line * pitch);
  const view = grid.view();
  const put = (offset: number, value: number): void => {
    view.setUint32(handle + offset, value, true);
  };
  put(TEXTURE.magic, TEXTURE_MAGIC);
  put(TEXTURE.kind, kind);
  put(TEXTURE.data, data);
  put(TEXTURE.width, image.width);
  put(TEXTURE.height, image.height);
  put(TEXTURE.depth, image.depth);
  put(TEXTURE.pitch, pitch);
  put(TEXTURE.slicePitch, pitch * image.height);
  put(TEXTURE.format, image.format);
  put(TEXTURE.channels, image.channels);
  put(TEXTURE.texelBytes, image.texelBytes);
  put(
    TEXTURE.flags,
    (sampling.integer ? 1 : 0) | (sampling.normalized ? 2 : 0) | (sampling.srgb ? 16 : 0),
  );
  put(TEXTURE.filter, sampling.linear ? 1 : 0);
  (sampling.modes ?? [CLAMP, CLAMP, CLAMP]).forEach((mode, axis) => {
    put(TEXTURE.addressMode + 4 * axis, mode);
  });
  (sampling.border ?? [0, 0, 0, 0]).forEach((value, c) => {
    view.setFloat32(handle + TEXTURE.border + 4 * c, value, true);
  });
  put(TEXTURE.linear, sampling.buffer ? 1 : 0);
  put(TEXTURE.layered, sampling.layered ? 1 : 0);
  return {
    handle,
    data: new Uint8Array(grid.memory.buffer, data, pitch * image.height * image.depth),
  };
};

/** Fetches at points of four words each (x, y, z, layer); the result has four words for each. */
function fetch(
  image: Image,
  sampling: Sampling,
  instruction: string,
  points: Uint32Array,
): Uint32Array {
  const grid = new Grid(
    kernelText(
      'k',
      '.param .u64 tex, .param .u64 at, .param .u64 out, .param .u32 n',
      `
    .reg .b64 %tex, %p; .reg .b32 %i, %n, %t, %l, %r<4>; .reg .f32 %x, %y, %z; .reg .pred %q;
    .reg .s32 %a, %b, %c;
    ld.param.u64 %tex, [tex]; ld.param.u32 %n, [n];
    mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, 64, %t;
    setp.ge.u32 %q, %i, %n; @%q exit;
    ld.param.u64 %p, [at]; mad.wide.u32 %p, %i, 16, %p; ld.global.v4.b32 {%a, %b, %c, %l}, [%p];
    mov.b32 %x, %a; mov.b32 %y, %b; mov.b32 %z, %c;
    ${instruction}
    ld.param.u64 %p, [out]; mad.wide.u32 %p, %i, 16, %p;
    st.global.v4.b32 [%p], {%r0, %r1, %r2, %r3}; ret;`,
    ),
  );
  const { handle } = describeImage(grid, image, sampling, TEXTURE_KIND.texture);
  const at = grid.put(points);
  const out = grid.put(new Uint32Array(points.length));
  const count = points.length / 4;
  const { status } = grid.run(
    'k',
    [{ i64: handle }, { i64: at.address }, { i64: out.address }, { i32: count }],
    { grid: [Math.ceil(count / 64)], block: [64] },
  );
  expect(status).toBe(0);
  return out.view;
}

const asFloats = (words: Uint32Array): Float32Array => new Float32Array(words.slice().buffer);
const pointsOf = (list: readonly (readonly number[])[]): Uint32Array => {
  const floatsOf = new Float32Array(list.length * 4);
  const words = new Uint32Array(floatsOf.buffer);
  list.forEach(([x = 0, y = 0, z = 0, layer = 0], index) => {
    floatsOf.set([x, y, z], 4 * index);
    words[4 * index + 3] = layer;
  });
  return words;
};

/**
 * One axis by the guide: the texels that count (undefined is the border), and the weight of the
 * second one in 256ths.
 */
function axis(
  coordinate: number,
  n: number,
  mode: number,
  normalized: boolean,
  linear: boolean,
): { texels: (number | undefined)[]; weight: number } {
  let u = Math.fround(coordinate);
  let how = mode;
  if (normalized) {
    if (mode === WRAP) u -= Math.floor(u);
    if (mode === MIRROR) u = Math.floor(u) % 2 === 0 ? u - Math.floor(u) : 1 - (u - Math.floor(u));
    u *= n;
  } else if (mode !== BORDER) {
    how = CLAMP;
  }
  const texel = (i: number): number | undefined => {
    if (i >= 0 && i < n) return i;
    switch (how) {
      case BORDER:
        return undefined;
      case WRAP:
        return ((i % n) + n) % n;
      case MIRROR:
        return i < 0 ? -1 - i : 2 * n - 1 - i;
      default:
        return i < 0 ? 0 : n - 1;
    }
  };
  if (!linear) return { texels: [texel(Math.floor(u))], weight: 0 };
  const place = how === CLAMP ? Math.min(Math.max(u - 0.5, 0), n - 1) : u - 0.5;
  const low = Math.floor(place);
  return { texels: [texel(low), texel(low + 1)], weight: Math.floor((place - low) * 256 + 0.5) };
}

function sample(
  image: Image,
  sampling: Sampling,
  dimensions: number,
  point: readonly number[],
  c: number,
): number {
  const {
    normalized = false,
    linear = false,
    modes = [CLAMP, CLAMP, CLAMP],
    border = [0, 0, 0, 0],
  } = sampling;
  const values = new Float32Array(image.bytes.buffer, image.bytes.byteOffset);
  const sizes = [image.width, image.height, image.depth];
  const [x, y, z] = [0, 1, 2].map((at) =>
    at < dimensions
      ? axis(point[at]!, sizes[at]!, modes[at]!, normalized, linear)
      : { texels: [0], weight: 0 },
  );
  const weights = weightsOf([x!.weight, y!.weight, z!.weight]);
  let sum = 0;
  z!.texels.forEach((k, dz) =>
    y!.texels.forEach((j, dy) =>
      x!.texels.forEach((i, dx) => {
        const missing = i === undefined || j === undefined || k === undefined;
        sum +=
          (weights[dx]![dy]![dz]! / 256) *
          (missing
            ? border[c]!
            : values[((k * image.height + j) * image.width + i) * image.channels + c]!);
      }),
    ),
  );
  return Math.fround(sum);
}

const FETCH = [
  '',
  'tex.1d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x}];',
  'tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x, %y}];',
  'tex.3d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x, %y, %z, %z}];',
];

describe('tex', () => {
  const image = floats(7, 5, 3, 4, (x, y, z, c) =>
    Math.fround(Math.sin(x * 12.9 + y * 78.2 + z * 37.7 + c * 9.1) * 10),
  );
  for (const dimensions of [1, 2, 3]) {
    for (const linear of [false, true]) {
      it(
        `${dimensions}d, ${linear ? 'linear' : 'point'} filtering, any address modes`,
        { tags: 'random' },
        () => {
          const coordinate = fc.double({ min: -3, max: 4, noNaN: true }).map(Math.fround);
          fc.assert(
            fc.property(
              fc.boolean(),
              fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3)),
              fc.array(fc.tuple(coordinate, coordinate, coordinate), {
                minLength: 20,
                maxLength: 60,
              }),
              (normalized, modes, points) => {
                const scaled = normalized
                  ? points
                  : points.map(([x, y, z]) => [
                      Math.fround(x * 4),
                      Math.fround(y * 4),
                      Math.fround(z * 2),
                    ]);
                const sampling: Sampling = { normalized, linear, modes, border: [1, 2, 3, 4] };
                const got = asFloats(
                  fetch(
                    dimensions === 1
                      ? { ...image, height: 1, depth: 1 }
                      : dimensions === 2
                        ? { ...image, depth: 1 }
                        : image,
                    sampling,
                    FETCH[dimensions]!,
                    pointsOf(scaled),
                  ),
                );
                scaled.forEach((point, index) => {
                  for (let c = 0; c < 4; c++) {
                    const wanted = sample(image, sampling, dimensions, point, c);
                    expect(Math.abs(got[4 * index + c]! - wanted)).toBeLessThanOrEqual(
                      Math.abs(wanted) * 2 ** -22 + 1e-6,
                    );
                  }
                });
              },
            ),
            { numRuns: 25 },
          );
        },
      );
    }
  }
  it('narrow integers read as numbers of [0, 1] and [-1, 1], or as they are', () => {
    const image8 = (format: number): Image => ({
      width: 4,
      height: 1,
      depth: 1,
      channels: 1,
      format,
      bytes: Uint8Array.of(0, 255, 128, 51),
      texelBytes: 1,
    });
    const points = pointsOf([[0], [1], [2], [3]]);
    const red = (words: Uint32Array): Uint32Array => words.filter((_, index) => index % 4 === 0);
    expect([...asFloats(red(fetch(image8(1), {}, FETCH[1]!, points)))]).toEqual(
      [0, 1, 128 / 255, 0.2].map(Math.fround),
    );
    expect([...asFloats(red(fetch(image8(8), {}, FETCH[1]!, points)))]).toEqual(
      [0, -1 / 127, -1, 51 / 127].map(Math.fround),
    );
    expect([
      ...red(fetch(image8(1), { integer: true }, FETCH[1]!.replace('v4.f32', 'v4.u32'), points)),
    ]).toEqual([0, 255, 128, 51]);
    expect(
      [
        ...red(fetch(image8(8), { integer: true }, FETCH[1]!.replace('v4.f32', 'v4.s32'), points)),
      ].map((word) => word | 0),
    ).toEqual([0, -1, -128, 51]);
    const linear = asFloats(red(fetch(image8(1), { srgb: true }, FETCH[1]!, points)));
    [0, 1, 128 / 255, 0.2].forEach((v, index) =>
      expect(linear[index]).toBeCloseTo(v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4, 6),
    );
  });
  it('absent channels are 0, 0 and 1; halves widen; f16x2 results narrow', () => {
    const half: Image = {
      width: 2,
      height: 1,
      depth: 1,
      channels: 2,
      format: 0x10,
      bytes: new Uint8Array(Uint16Array.of(0x3c00, 0xc100, 0x3555, 0x7c00).buffer),
      texelBytes: 4,
    };
    expect([...asFloats(fetch(half, {}, FETCH[1]!, pointsOf([[1]])))]).toEqual([
      0.333251953125,
      Infinity,
      0,
      1,
    ]);
    const packed = fetch(
      half,
      {},
      'mov.u32 %r2, 0; mov.u32 %r3, 0; tex.1d.v2.f16x2.f32 {%r0, %r1}, [%tex, {%x}];',
      pointsOf([[0]]),
    );
    expect([...packed]).toEqual([0xc1003c00, 0x3c000000, 0, 0]);
  });
  it('linear memory by index is zero outside', () => {
    const line = floats(5, 1, 1, 1, (x) => x + 1);
    const words = fetch(
      line,
      { buffer: true },
      'tex.1d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%tex, {%a}];',
      Uint32Array.of(4, 0, 0, 0, 5, 0, 0, 0, 0xffffffff, 0, 0, 0),
    );
    expect([...asFloats(words)].filter((_, index) => index % 4 === 0)).toEqual([5, 0, 0]);
  });
  it('coordinates far outside give the texel at the edge', () => {
    const line = floats(5, 1, 1, 1, (x) => x + 1);
    const points = pointsOf(
      [-Infinity, -1e30, -15280566272, -2147483648, 2147483648, 15280566272, 1e30, Infinity].map(
        (x) => [x],
      ),
    );
    for (const linear of [false, true]) {
      for (const normalized of [false, true]) {
        const words = fetch(line, { linear, normalized }, FETCH[1]!, points);
        expect([...asFloats(words)].filter((_, index) => index % 4 === 0)).toEqual([
          1, 1, 1, 1, 5, 5, 5, 5,
        ]);
      }
    }
  });
  it('layers are picked by index and clamped', () => {
    const layers = floats(4, 2, 3, 1, (x, y, z) => x + 10 * y + 100 * z);
    const words = fetch(
      layers,
      { layered: true, linear: true },
      'tex.a2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%l, %x, %y, %y}];',
      pointsOf([
        [1, 1, 0, 0],
        [1, 1, 0, 2],
        [2.5, 0.5, 0, 9],
        [2.5, 0.5, 0, 1],
      ]),
    );
    expect([...asFloats(words)].filter((_, index) => index % 4 === 0)).toEqual([
      5.5, 205.5, 202, 102,
    ]);
  });
  it('cubes: each axis is the middle of its face, and faces have sides', () => {
    const cube = floats(2, 2, 6, 1, (x, y, z) => x + 2 * y + 10 * z);
    const words = fetch(
      cube,
      { normalized: true, layered: true },
      'tex.cube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x, %y, %z, %z}];',
      pointsOf([
        [1, 0.5, 0.5],
        [-1, 0.5, 0.5],
        [0.5, 1, 0.5],
        [0.5, -1, 0.5],
        [0.5, 0.5, 1],
        [0.5, 0.5, -1],
      ]),
    );
    // Per face (sc, tc): +x (-z, -y), -x (z, -y), +y (x, z), -y (x, -z), +z (x, -y), -z (-x, -y).
    expect([...asFloats(words)].filter((_, index) => index % 4 === 0)).toEqual([
      0, 11, 23, 31, 41, 50,
    ]);
  });
  it('.level and .grad of one level, offsets, and the predicate of a sparse fetch', () => {
    const picture = floats(4, 4, 1, 1, (x, y) => x + 10 * y);
    const at = pointsOf([[1, 2]]);
    const first = (instruction: string): number =>
      asFloats(fetch(picture, {}, instruction, at))[0]!;
    expect(
      first('tex.level.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x, %y}], 0f40000000;'),
    ).toBe(21);
    expect(
      first('tex.grad.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x, %y}], {%x, %y}, {%x, %y};'),
    ).toBe(21);
    expect(first('tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x, %y}], {1, -2};')).toBe(2);
    expect(
      first(
        'tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}|%q, [%tex, {%x, %y}]; selp.b32 %r0, ' +
          '0f40e00000, 0f00000000, %q;',
      ),
    ).toBe(7);
  });
  it('tld4 gives the four texels around, counter-clockwise from below left', () => {
    const picture = floats(4, 4, 1, 2, (x, y, _, c) => x + 10 * y + 100 * c);
    const words = fetch(
      picture,
      {},
      'tld4.g.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%tex, {%x, %y}];',
      pointsOf([[2, 3]]),
    );
    expect([...asFloats(words)]).toEqual([131, 132, 122, 121]);
  });
  it('txq and istypep', () => {
    const picture: Image = {
      width: 6,
      height: 3,
      depth: 2,
      channels: 4,
      format: 1,
      bytes: new Uint8Array(6 * 3 * 2 * 4),
      texelBytes: 4,
    };
    const ask = (instructions: string, sampling: Sampling = {}): number[] => [
      ...fetch(picture, sampling, `mov.u32 %r3, 0; ${instructions}`, pointsOf([[0]])),
    ];
    expect(
      ask(
        'txq.width.b32 %r0, [%tex]; txq.height.b32 %r1, [%tex]; txq.depth.b32 %r2, [%tex]; ' +
          'txq.array_size.b32 %r3, [%tex];',
      ),
    ).toEqual([6, 3, 2, 0]);
    expect(
      ask(
        'txq.depth.b32 %r0, [%tex]; txq.array_size.b32 %r1, [%tex]; txq.channel_order.b32 ' +
          '%r2, [%tex];',
        { layered: true },
      ),
    ).toEqual([0, 2, 0x10b5, 0]);
    expect(
      ask(
        'txq.channel_data_type.b32 %r0, [%tex]; txq.filter_mode.b32 %r1, [%tex]; ' +
          'txq.addr_mode_1.b32 %r2, [%tex]; txq.normalized_coords.b32 %r3, [%tex];',
        { linear: true, normalized: true, modes: [0, 2, 0] },
      ),
    ).toEqual([0x10d2, 1, 1, 1]);
    expect(
      ask(
        'istypep.texref %q, %tex; selp.b32 %r0, 1, 0, %q; istypep.surfref %q, %tex; selp.b32 ' +
          '%r1, 1, 0, %q; mov.u32 %r2, 0;',
      ),
    ).toEqual([1, 0, 0, 0]);
  });
  it('a handle that names no texture is a fault', () => {
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 tex',
        `.reg .b64 %tex; .reg .f32 %f<4>; ld.param.u64 %tex, [tex];
      tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex, {%f0}];
      ret;`,
      ),
    );
    for (const handle of [0n, 70000n, 0xffffffffffffffffn, 1n << 40n]) {
      expect(grid.run('k', [{ i64: handle }], { grid: [1], block: [1] }).fault).toMatchObject({
        kind: FAULT.outOfBounds,
        line: 8,
        address: handle,
      });
    }
  });
});

describe('surfaces', () => {
  const run = (
    image: Image,
    body: string,
    layered = false,
  ): { data: Uint8Array; out: Uint32Array; status: number } => {
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 surf, .param .u64 out',
        `
      .reg .b64 %surf, %p, %w<2>; .reg .b32 %i, %r<4>; .reg .b16 %h; .reg .pred %q;
      ld.param.u64 %surf, [surf]; mov.u32 %i, %tid.x;
      mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
      ${body}
      ld.param.u64 %p, [out]; mad.wide.u32 %p, %i, 16, %p;
      st.global.v4.b32 [%p], {%r0, %r1, %r2, %r3}; ret;`,
      ),
    );
    const { handle, data } = describeImage(grid, image, { layered }, TEXTURE_KIND.surface);
    const out = grid.put(new Uint32Array(128));
    const { status } = grid.run('k', [{ i64: handle }, { i64: out.address }], {
      grid: [1],
      block: [8],
    });
    return { data, out: out.view, status };
  };
  const words = floats(8, 4, 2, 1, (x, y, z) => x + 10 * y + 100 * z);
  const pitch = 8 * 4 + 32;
  const at = (data: Uint8Array, x: number, y: number, z: number): number =>
    new DataView(data.buffer, data.byteOffset).getFloat32(x * 4 + (y + 4 * z) * pitch, true);
  it('sust writes, suld reads what it wrote, in bytes along x', () => {
    const { data, out } = run(
      words,
      `shl.b32 %r1, %i, 2; suld.b.3d.b32.trap {%r0}, [%surf, {%r1, 2, 1, 1}];
      mov.b32 %r2, 0f42c80000;
      sust.b.3d.b32.trap [%surf, {%r1, 3, 1, 1}], {%r2};
      suld.b.3d.b32.trap %r3, [%surf, {%r1, 3, 1, 1}]; mov.u32 %r1, 0; mov.u32 %r2, 0;`,
    );
    for (let x = 0; x < 8; x++) {
      expect([...asFloats(out.subarray(4 * x, 4 * x + 4))]).toEqual([120 + x, 0, 0, 100]);
      expect(at(data, x, 3, 1)).toBe(100);
      expect(at(data, x, 2, 1)).toBe(120 + x);
    }
  });
  it('vectors, narrow and wide units, layers', () => {
    const { out, data } = run(
      { ...words, depth: 2 },
      `shl.b32 %r3, %i, 3; setp.lt.u32 %q, %i, 4;
      @%q suld.b.a2d.v2.b32.trap {%r0, %r1}, [%surf, {1, %r3, 0, 0}];
      @%q mul.lo.u32 %r3, %i, 8;
      @%q suld.b.2d.v4.b16.trap {%h, %h, %h, %h}, [%surf, {%r3, 0}];
      @%q suld.b.2d.v2.b64.zero {%w0, %w1}, [%surf, {16, 1}];
      @%q sust.b.2d.b64.zero [%surf, {0, 2}], %w1;
      mov.u32 %r3, 0; mov.u32 %r2, 0;`,
      true,
    );
    expect([...asFloats(out.subarray(0, 16))]).toEqual([
      100, 101, 0, 0, 102, 103, 0, 0, 104, 105, 0, 0, 106, 107, 0, 0,
    ]);
    expect([at(data, 0, 2, 0), at(data, 1, 2, 0), at(data, 2, 2, 0)]).toEqual([16, 17, 22]);
  });
  it('.zero reads zero and drops stores outside, .clamp moves in, .trap traps', () => {
    const zero = run(
      words,
      'mov.u32 %r0, 7; suld.b.2d.b32.zero %r0, [%surf, {32, 0}]; sust.b.2d.b32.zero [%surf, ' +
        '{0, -1}], %r0; suld.b.2d.b32.clamp %r1, [%surf, {400, 9}]; suld.b.2d.b32.clamp %r2, ' +
        '[%surf, {-4, 1}];',
    );
    expect([...asFloats(zero.out.subarray(0, 4))]).toEqual([0, 37, 10, 0]);
    expect(at(zero.data, 0, 0, 0)).toBe(0);
    expect(run(words, 'suld.b.2d.b32.trap %r0, [%surf, {32, 0}];').status).toBe(3);
    expect(run(words, 'suld.b.2d.b32.trap %r0, [%surf, {2, 0}];').status).toBe(3);
  });
  it('sust.p converts to the format of the surface', () => {
    const bytes: Image = {
      width: 8,
      height: 1,
      depth: 1,
      channels: 4,
      format: 1,
      bytes: new Uint8Array(32),
      texelBytes: 4,
    };
    const { data } = run(
      bytes,
      'mov.u32 %r0, 300; mov.u32 %r1, 17; sust.p.2d.v4.b32.trap [%surf, {%i, 0}], {%r0, %r1, ' +
        '%i, %r3};',
    );
    expect([...data.subarray(0, 32)]).toEqual(
      Array.from({ length: 8 }, (_, x) => [255, 17, x, 0]).flat(),
    );
  });
  it('sured: every thread counts', () => {
    const cells: Image = {
      width: 8,
      height: 1,
      depth: 1,
      channels: 1,
      format: 3,
      bytes: new Uint8Array(32),
      texelBytes: 4,
    };
    const { data } = run(
      cells,
      `add.u32 %r0, %i, 1; sured.b.add.1d.u32.trap [%surf, {0}], %r0;
      sured.b.max.1d.u32.trap [%surf, {4}], %r0; sub.u32 %r1, 3, %r0;
      sured.b.min.1d.s32.trap [%surf, {8}], %r1;
      shl.b32 %r2, 1, %i; sured.p.or.1d.b32.trap [%surf, {3}], %r2; cvt.u64.u32 %w0, %r0;
      sured.b.add.1d.u64.zero [%surf, {16}], %w0;`,
    );
    const view = new DataView(data.buffer, data.byteOffset);
    expect([
      view.getUint32(0, true),
      view.getUint32(4, true),
      view.getInt32(8, true),
      view.getUint32(12, true),
      view.getUint32(16, true),
    ]).toEqual([36, 8, -5, 255, 36]);
  });
  it('suq', () => {
    const { out } = run(
      words,
      'suq.width.b32 %r0, [%surf]; suq.height.b32 %r1, [%surf]; suq.depth.b32 %r2, [%surf]; ' +
        'suq.channel_data_type.b32 %r3, [%surf];',
    );
    expect([...out.subarray(0, 4)]).toEqual([8, 4, 2, 0x10de]);
  });
});
