// The sample kernels that nvcc compiled, for three targets, against plain JavaScript.

import { describe, expect, it } from 'vitest';
import { PtxError, STATUS, TEXTURE, TEXTURE_KIND, TEXTURE_MAGIC, compilePtx } from './index.js';
import { Grid, kernelText, sample } from './run-grid.test-support.js';
import type { Argument, Launch } from './run-grid.test-support.js';
import { someOf } from '../../test/random-runs.js';

const TARGETS = ['sm_80', 'sm_75', 'sm_90'] as const;
const fround = Math.fround;

const random = (() => {
  let state = 12345;
  return (): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
})();
const floats = (n: number, scale = 1, shift = 0): Float32Array =>
  Float32Array.from({ length: n }, () => random() * scale + shift);
const integers = (n: number, below: number): Int32Array =>
  Int32Array.from({ length: n }, () => Math.floor(random() * below));

/** Exact f32 fma for operands whose product and sum fit f64. */
const fma = (a: number, b: number, c: number): number => fround(a * b + c);

function each(file: string, body: (open: () => Grid) => void): void {
  someOf(1, describe)(TARGETS)(`${file} %s`, (target) => {
    body(() => new Grid(sample(file, target)));
  });
}

function launch(grid: Grid, name: string, args: Argument[], shape: Launch): void {
  const outcome = grid.run(name, args, shape);
  expect(outcome.fault).toBeUndefined();
  expect(outcome.status).toBe(STATUS.done);
}

function expectClose(actual: ArrayLike<number>, wanted: ArrayLike<number>, relative: number): void {
  for (let index = 0; index < wanted.length; index++) {
    const difference = Math.abs(actual[index]! - wanted[index]!);
    if (
      !(difference <= relative * Math.max(1, Math.abs(wanted[index]!))) &&
      !Object.is(actual[index], wanted[index])
    ) {
      expect.fail(`[${index}]: ${actual[index]}, not ${wanted[index]}`);
    }
  }
}

each('k01_saxpy', (open) => {
  it.each([
    ['saxpy', 4],
    ['saxpy_stride', 2],
    ['daxpy', 4],
    ['saxpy4', 1],
  ] as const)('%s', (name, blocks) => {
    const grid = open();
    const n = 1000;
    const double = name === 'daxpy';
    const x = double ? grid.put(Float64Array.from(floats(n))) : grid.put(floats(n));
    const y = double ? grid.put(Float64Array.from(floats(n))) : grid.put(floats(n));
    const before = [...y.view];
    launch(
      grid,
      name,
      [
        name === 'saxpy_stride' ? { i64: n } : { i32: name === 'saxpy4' ? n / 4 : n },
        double ? { f64: 2.5 } : { f32: 2.5 },
        { i64: x.address },
        { i64: y.address },
      ],
      { grid: [blocks], block: [256] },
    );
    before.forEach((value, index) => {
      if (double)
        expect(Math.abs(y.view[index]! - (2.5 * x.view[index]! + value))).toBeLessThan(1e-15);
      else expect(y.view[index]).toBe(fma(x.view[index]!, 2.5, value));
    });
  });
});

const toHalf = (x: number): number => {
  const view = new Float32Array([x]);
  const bits = new Uint32Array(view.buffer)[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const a = Math.abs(x);
  if (Number.isNaN(x)) return 0x7fff;
  if (a >= 65520) return sign | 0x7c00;
  const exponent = Math.max(Math.floor(Math.log2(a || 2 ** -30)), -14);
  const unit = 2 ** (exponent - 10);
  let q = a / unit;
  const floor = Math.floor(q);
  q = q - floor > 0.5 || (q - floor === 0.5 && floor % 2) ? floor + 1 : floor;
  const value = q * unit;
  return value < 2 ** -14
    ? sign | Math.round(value * 2 ** 24)
    : sign |
        (((Math.floor(Math.log2(value)) + 15) << 10) +
          Math.round((value / 2 ** Math.floor(Math.log2(value)) - 1) * 1024));
};
const fromHalf = (h: number): number => {
  const m = h & 0x7fff;
  const a = m >= 0x400 ? (1 + (m & 1023) / 1024) * 2 ** ((m >> 10) - 15) : m * 2 ** -24;
  return h & 0x8000 ? -a : a;
};
const fromBfloat = (h: number): number => new Float32Array(new Uint32Array([h << 16]).buffer)[0]!;
const toBfloat = (x: number): number => {
  const bits = new Uint32Array(new Float32Array([x]).buffer)[0]!;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
};

each('k02_half_bf16', (open) => {
  const n = 200;
  it('vadd_half, vadd_half2, vadd_bf16, cvts', () => {
    const grid = open();
    const values = floats(n, 8, -4);
    const more = floats(n, 8, -4);
    const a = grid.put(Uint16Array.from(values, toHalf));
    const b = grid.put(Uint16Array.from(more, toHalf));
    const c = grid.put(new Uint16Array(n));
    const args = [{ i64: a.address }, { i64: b.address }, { i64: c.address }];
    const shape = { grid: [1] as [number], block: [256] as [number] };
    launch(grid, 'vadd_half', [{ i32: n }, ...args], shape);
    c.view.forEach((bits, i) =>
      expect(bits).toBe(toHalf(fromHalf(a.view[i]!) + fromHalf(b.view[i]!))),
    );
    const before = [...c.view];
    launch(grid, 'vadd_half2', [{ i32: n / 2 }, ...args], shape);
    c.view.forEach((bits, i) =>
      expect(bits).toBe(toHalf(fromHalf(a.view[i]!) * fromHalf(b.view[i]!) + fromHalf(before[i]!))),
    );
    a.view.set(Uint16Array.from(values, toBfloat));
    b.view.set(Uint16Array.from(more, toBfloat));
    launch(grid, 'vadd_bf16', [{ i32: n }, ...args], shape);
    c.view.forEach((bits, i) =>
      expect(bits).toBe(toBfloat(fromBfloat(a.view[i]!) + fromBfloat(b.view[i]!))),
    );
    const input = grid.put(floats(n, 400, -200));
    const bytes = grid.put(new Uint8Array(n));
    launch(
      grid,
      'cvts',
      [
        { i32: n },
        { i64: input.address },
        { i64: a.address },
        { i64: b.address },
        { i64: bytes.address },
      ],
      shape,
    );
    input.view.forEach((x, i) => {
      expect(a.view[i]).toBe(toHalf(x));
      expect(b.view[i]).toBe(toBfloat(x));
      expect((bytes.view[i]! << 24) >> 24).toBe(Math.max(-128, Math.min(127, Math.round(x))) + 0);
    });
  });
});

each('k03_reduce', (open) => {
  it('reduces in three ways', () => {
    const grid = open();
    const n = 5000;
    const x = grid.put(Float32Array.from(integers(n, 100)));
    const out = grid.put(new Float32Array(64));
    const part = grid.put(new Float32Array(64));
    const total = x.view.reduce((sum, value) => sum + value, 0);
    launch(grid, 'reduce_sum', [{ i64: x.address }, { i64: out.address }, { i32: n }], {
      grid: [7],
      block: [256],
    });
    expect(out.view[0]).toBe(total);
    out.view.fill(0);
    launch(grid, 'reduce_tree', [{ i64: x.address }, { i64: out.address }, { i32: n }], {
      grid: [10],
      block: [256],
      dynamicShared: 1024,
    });
    expect(out.view.reduce((sum, value) => sum + value, 0)).toBe(total);
    launch(
      grid,
      'reduce_lastblock',
      [{ i64: x.address }, { i64: part.address }, { i64: out.address }, { i32: n }],
      { grid: [9], block: [256] },
    );
    expect(out.view[0]).toBe(total);
  });
});

each('k04_sgemm', (open) => {
  it('multiplies matrices', () => {
    const grid = open();
    const n = 64;
    const a = grid.put(Float32Array.from(integers(n * n, 9)));
    const b = grid.put(Float32Array.from(integers(n * n, 9)));
    const c = grid.put(new Float32Array(n * n));
    const args = [
      { i32: n },
      { i32: n },
      { i32: n },
      { i64: a.address },
      { i64: b.address },
      { i64: c.address },
    ];
    const wanted = Float32Array.from({ length: n * n }, (_, at) => {
      let sum = 0;
      for (let k = 0; k < n; k++)
        sum += a.view[Math.floor(at / n) * n + k]! * b.view[k * n + (at % n)]!;
      return sum;
    });
    launch(grid, 'sgemm_tiled', args, { grid: [4, 4], block: [16, 16] });
    expect(c.view).toEqual(wanted);
    c.view.fill(0);
    launch(grid, 'sgemm_reg', args, { grid: [1, 1], block: [256] });
    expect(c.view).toEqual(wanted);
  });
});

each('k05_softmax', (open) => {
  it('softmax, rms_norm, gelu_silu, rope', () => {
    const grid = open();
    const [rows, cols] = [3, 300];
    const x = grid.put(floats(rows * cols, 6, -3));
    const y = grid.put(new Float32Array(rows * cols));
    const z = grid.put(new Float32Array(rows * cols));
    const row = (r: number): Float32Array => x.view.subarray(r * cols, (r + 1) * cols);
    launch(grid, 'softmax', [{ i64: x.address }, { i64: y.address }, { i32: cols }], {
      grid: [rows],
      block: [128],
    });
    expectClose(
      y.view,
      Float32Array.from(x.view, (value, i) => {
        const all = row(Math.floor(i / cols));
        const sum = all.reduce((total, other) => total + Math.exp(other), 0);
        return Math.exp(value) / sum;
      }),
      1e-6,
    );
    const w = grid.put(floats(cols));
    launch(
      grid,
      'rms_norm',
      [{ i64: x.address }, { i64: w.address }, { i64: y.address }, { i32: cols }, { f32: 1e-5 }],
      { grid: [rows], block: [128] },
    );
    expectClose(
      y.view,
      Float32Array.from(x.view, (value, i) => {
        const all = row(Math.floor(i / cols));
        return (
          (value /
            Math.sqrt(all.reduce((total, other) => total + other * other, 0) / cols + 1e-5)) *
          w.view[i % cols]!
        );
      }),
      2e-6,
    );
    launch(
      grid,
      'gelu_silu',
      [{ i64: x.address }, { i64: y.address }, { i64: z.address }, { i32: rows * cols }],
      { grid: [4], block: [256] },
    );
    expectClose(
      y.view,
      Float32Array.from(
        x.view,
        (v) => 0.5 * v * (1 + Math.tanh(0.7978845608 * (v + 0.044715 * v * v * v))),
      ),
      2e-6,
    );
    expectClose(
      z.view,
      Float32Array.from(x.view, (v) => v / (1 + Math.exp(-v))),
      2e-6,
    );
    const q = grid.put(floats(128));
    const before = Float32Array.from(q.view);
    launch(grid, 'rope', [{ i64: q.address }, { i32: 64 }, { i32: 17 }], {
      grid: [1],
      block: [64],
    });
    expectClose(
      q.view,
      Float32Array.from(before, (_, at) => {
        const i = at >> 1;
        const angle = 17 * fround(10000 ** ((-2 * i) / 64));
        const [a, b] = [before[2 * i]!, before[2 * i + 1]!];
        return at & 1
          ? a * Math.sin(angle) + b * Math.cos(angle)
          : a * Math.cos(angle) - b * Math.sin(angle);
      }),
      1e-5,
    );
  });
});

each('k06_hist', (open) => {
  it('histogram, atomics, spin lock', () => {
    const grid = open();
    const n = 3000;
    const d = grid.put(Uint8Array.from(integers(n, 256)));
    const h = grid.put(new Uint32Array(256));
    launch(grid, 'hist256', [{ i64: d.address }, { i64: h.address }, { i32: n }], {
      grid: [3],
      block: [128],
    });
    const wanted = new Uint32Array(256);
    d.view.forEach((value) => {
      wanted[value]!++;
    });
    expect(h.view).toEqual(wanted);
    const i = grid.put(new Int32Array(16));
    const u = grid.put(new Uint32Array(64));
    u.view[0] = 0xffffffff;
    const l = grid.put(new BigUint64Array(4));
    const f = grid.put(new Float32Array(4));
    const g = grid.put(new Float64Array(4));
    const s = grid.put(new BigInt64Array(4));
    launch(
      grid,
      'atomics',
      [i, u, l, f, g, s].map(({ address }) => ({ i64: address })),
      { grid: [1], block: [32] },
    );
    expect([...i.view.subarray(0, 8)]).toEqual([496, -32, 0, 0, 31, i.view[5], 32, 32]);
    expect(u.view[0]).toBe(0);
    expect(u.view[1]).toBe(0xffffffff);
    expect(u.view[2]).toBe(31);
    expect(u.view[3]).toBe(0);
    expect(u.view[4]).toBe(32 % 17);
    expect(l.view[0]).toBe(32n);
    expect(l.view[1]).toBe(31n);
    expect(l.view[2]).toBe(5n);
    expect(f.view[0]).toBe(48);
    expect(f.view[1]).toBe(3);
    expect(g.view[0]).toBe(80);
    // -threadIdx.x is unsigned: after widening, it is never below zero.
    expect(s.view[0]).toBe(0n);
    const lock = grid.put(new Int32Array(2));
    launch(grid, 'spin', [{ i64: lock.address }, { i64: lock.address + 4 }], {
      grid: [2],
      block: [64],
    });
    expect(lock.view[1]).toBe(128);
  });
});

each('k07_scan', (open) => {
  it('scans', () => {
    const grid = open();
    const n = 1000;
    const x = grid.put(integers(n, 10));
    const out = grid.put(new Int32Array(1024));
    const sums = grid.put(new Int32Array(8));
    launch(
      grid,
      'scan_block',
      [{ i64: x.address }, { i64: out.address }, { i64: sums.address }, { i32: n }],
      { grid: [4], block: [256] },
    );
    let sum = 0;
    x.view.forEach((value, i) => {
      sum = i % 256 ? sum + value : value;
      expect(out.view[i]).toBe(sum);
    });
    const g = grid.put(integers(512, 10));
    const before = [...g.view];
    launch(grid, 'scan_blelloch', [{ i64: g.address }, { i32: 512 }], {
      grid: [1],
      block: [256],
      dynamicShared: 2048,
    });
    let running = 0;
    before.forEach((value, i) => {
      expect(g.view[i]).toBe(running);
      running += value;
    });
  });
});

each('k08_transpose', (open) => {
  it('transposes', () => {
    const grid = open();
    const [w, h] = [70, 45];
    const x = grid.put(floats(w * h));
    const y = grid.put(new Float32Array(w * h));
    launch(grid, 'transpose', [{ i64: x.address }, { i64: y.address }, { i32: w }, { i32: h }], {
      grid: [3, 2],
      block: [32, 8],
    });
    y.view.forEach((value, at) => expect(value).toBe(x.view[(at % h) * w + Math.floor(at / h)]));
  });
});

each('k09_nbody', (open) => {
  it('accelerates bodies', () => {
    const grid = open();
    const n = 256;
    const p = grid.put(floats(n * 4, 2, -1));
    const v = grid.put(new Float32Array(n * 4));
    launch(
      grid,
      'nbody',
      [{ i64: p.address }, { i64: v.address }, { i32: n }, { f32: 0.01 }, { f32: 0.1 }],
      { grid: [2], block: [128] },
    );
    for (const i of [0, 100, 255]) {
      const a = [0, 0, 0];
      for (let j = 0; j < n; j++) {
        const d = [0, 1, 2].map((k) => p.view[j * 4 + k]! - p.view[i * 4 + k]!);
        const r = 1 / Math.sqrt(d[0]! ** 2 + d[1]! ** 2 + d[2]! ** 2 + 0.1);
        d.forEach((value, k) => {
          a[k]! += value * p.view[j * 4 + 3]! * r ** 3;
        });
      }
      expectClose(
        v.view.subarray(i * 4, i * 4 + 3),
        a.map((value) => value * 0.01),
        1e-5,
      );
    }
    const q = grid.put(Float64Array.from(floats(64 * 4, 1, 0.5)));
    const acc = grid.put(new Float64Array(64 * 3));
    launch(grid, 'nbody_d', [{ i64: q.address }, { i64: acc.address }, { i32: 64 }], {
      grid: [1],
      block: [64],
    });
    let ax = 0;
    for (let j = 0; j < 64; j++) {
      const dx = q.view[j * 4]! - q.view[3 * 4]!;
      ax += dx / Math.sqrt(dx * dx + 1e-9) / Math.sqrt(q.view[j * 4 + 3]!);
    }
    expect(acc.view[9]).toBeCloseTo(ax, 10);
  });
});

each('k10_mandel', (open) => {
  it('iterates', () => {
    const grid = open();
    const [w, h] = [40, 30];
    const out = grid.put(new Int32Array(w * h));
    const count = (x: number, y: number, round: (v: number) => number): number => {
      const s = round(0.07);
      const cx = round(x * s + round(-2));
      const cy = round(y * s + round(-1));
      let [zx, zy, i] = [0, 0, 0];
      while (i < 50 && round(zx * zx + round(zy * zy)) < 4) {
        const t = round(round(zx * zx - round(zy * zy)) + cx);
        zy = round(round(zx + zx) * zy + cy);
        zx = t;
        i++;
      }
      return i;
    };
    launch(
      grid,
      'mandel',
      [
        { i64: out.address },
        { i32: w },
        { i32: h },
        { f32: -2 },
        { f32: -1 },
        { f32: 0.07 },
        { i32: 50 },
      ],
      { grid: [3, 4], block: [16, 8] },
    );
    let different = 0;
    out.view.forEach((value, at) => {
      if (value !== count(at % w, Math.floor(at / w), fround)) different++;
    });
    // nvcc's choice of fused operations moves points near the border.
    expect(different).toBeLessThan((w * h) / 100);
    launch(
      grid,
      'mandel_d',
      [
        { i64: out.address },
        { i32: w },
        { i32: h },
        { f64: -2 },
        { f64: -1 },
        { f64: 0.07 },
        { i32: 50 },
      ],
      { grid: [3, 4], block: [16, 8] },
    );
    different = 0;
    out.view.forEach((value, at) => {
      if (value !== count(at % w, Math.floor(at / w), (v) => (v === fround(0.07) ? 0.07 : v)))
        different++;
    });
    expect(different).toBeLessThan((w * h) / 100);
  });
});

each('k11_resize', (open) => {
  it('tex_sample, surf_rw', () => {
    const grid = open();
    expect(grid.module.failures).toEqual([]);
    const texel = (x: number, y: number, c: number): number => x + 100 * y + 1000 * c;
    const [w, h] = [8, 3];
    const texels = grid.put(
      Float32Array.from({ length: w * h * 4 }, (_, i) =>
        texel((i >> 2) % w, Math.floor(i / (4 * w)), i & 3),
      ),
    );
    const object = (kind: number, data: number, format: number, texelBytes: number): number => {
      const at = grid.allocate(TEXTURE.bytes, 128);
      const fields: Partial<Record<keyof typeof TEXTURE, number>> = {
        magic: TEXTURE_MAGIC,
        kind,
        data,
        width: w,
        height: h,
        depth: 1,
        pitch: w * texelBytes,
        slicePitch: w * h * texelBytes,
        format,
        channels: 4,
        texelBytes,
        flags: 1,
      };
      for (const [name, value] of Object.entries(fields))
        grid.view().setUint32(at + TEXTURE[name as keyof typeof TEXTURE], value, true);
      return at;
    };
    const out = grid.put(new Float32Array(w * 4));
    launch(
      grid,
      'tex_sample',
      [
        { i64: object(TEXTURE_KIND.texture, texels.address, 0x20, 16) },
        { i64: out.address },
        { i32: w },
      ],
      { grid: [2, h], block: [w / 2] },
    );
    // Every row of blocks writes the same places: the last one remains.
    expect([...out.view]).toEqual([...texels.view.subarray(w * (h - 1) * 4)]);
    const pixels = grid.put(Uint8Array.from({ length: w * h * 4 }, (_, i) => i * 7));
    const before = pixels.view.slice();
    launch(
      grid,
      'surf_rw',
      [{ i64: object(TEXTURE_KIND.surface, pixels.address, 1, 4) }, { i32: w }],
      { grid: [2, h], block: [w / 2] },
    );
    expect([...pixels.view]).toEqual(
      [...before].map((value, i) => (i % 4 === 0 ? 255 - value : value)),
    );
  });
  it('resize_bilinear, sobel, conv1d', () => {
    const grid = open();
    const [sw, sh, dw, dh] = [17, 13, 40, 31];
    const s = grid.put(Uint8Array.from(integers(sw * sh * 4, 256)));
    const d = grid.put(new Uint8Array(dw * dh * 4));
    launch(
      grid,
      'resize_bilinear',
      [{ i64: s.address }, { i64: d.address }, { i32: sw }, { i32: sh }, { i32: dw }, { i32: dh }],
      { grid: [3, 4], block: [16, 8] },
    );
    const clamp = (v: number, most: number): number => Math.max(0, Math.min(most, v));
    d.view.forEach((value, at) => {
      const [k, x, y] = [at & 3, (at >> 2) % dw, Math.floor((at >> 2) / dw)];
      const [fx, fy] = [((x + 0.5) * sw) / dw - 0.5, ((y + 0.5) * sh) / dh - 0.5];
      const [ix, iy] = [Math.floor(fx), Math.floor(fy)];
      const pixel = (px: number, py: number): number =>
        s.view[(clamp(py, sh - 1) * sw + clamp(px, sw - 1)) * 4 + k]!;
      const [ax, ay] = [fx - ix, fy - iy];
      const wanted =
        (pixel(ix, iy) * (1 - ax) + pixel(ix + 1, iy) * ax) * (1 - ay) +
        (pixel(ix, iy + 1) * (1 - ax) + pixel(ix + 1, iy + 1) * ax) * ay;
      if (Math.abs(value - wanted) > 0.51) expect.fail(`[${at}]: ${value}, not ${wanted}`);
    });
    const image = grid.put(Uint8Array.from(integers(30 * 20, 256)));
    const edges = grid.put(new Uint8Array(30 * 20));
    launch(
      grid,
      'sobel',
      [{ i64: image.address }, { i64: edges.address }, { i32: 30 }, { i32: 20 }],
      { grid: [2, 2], block: [16, 16] },
    );
    const at = (x: number, y: number): number => image.view[y * 30 + x]!;
    for (let y = 1; y < 19; y++) {
      for (let x = 1; x < 29; x++) {
        const gx =
          -at(x - 1, y - 1) +
          at(x + 1, y - 1) -
          2 * at(x - 1, y) +
          2 * at(x + 1, y) -
          at(x - 1, y + 1) +
          at(x + 1, y + 1);
        const gy =
          -at(x - 1, y - 1) -
          2 * at(x, y - 1) -
          at(x + 1, y - 1) +
          at(x - 1, y + 1) +
          2 * at(x, y + 1) +
          at(x + 1, y + 1);
        expect(edges.view[y * 30 + x]).toBe(Math.min(255, Math.abs(gx) + Math.abs(gy)));
      }
    }
    const cf = grid.module.variables.find((variable) => variable.name === 'cf')!;
    const filter = new Float32Array(grid.memory.buffer, grid.dataBase + cf.offset, 64);
    filter.set([0.25, 0.5, 0.25]);
    const signal = grid.put(floats(100));
    const out = grid.put(new Float32Array(100));
    launch(
      grid,
      'conv1d',
      [{ i64: signal.address }, { i64: out.address }, { i32: 100 }, { i32: 1 }],
      { grid: [1], block: [128] },
    );
    expectClose(
      out.view,
      Float32Array.from(
        signal.view,
        (value, i) =>
          value / 2 + (signal.view[Math.max(i - 1, 0)]! + signal.view[Math.min(i + 1, 99)]!) / 4,
      ),
      1e-6,
    );
  });
});

each('k12_philox', (open) => {
  it('philox, mulhi64, bits', () => {
    const grid = open();
    const n = 64;
    const out = grid.put(new Float32Array(n * 4));
    launch(grid, 'philox_normal', [{ i64: out.address }, { i64: 0x123456789abcdefn }, { i32: n }], {
      grid: [1],
      block: [64],
    });
    const philox = (i: number): number[] => {
      let c = [BigInt(i), 0n, 0n, 0n];
      let k = [0x89abcdefn, 0x1234567n];
      for (let r = 0; r < 10; r++) {
        const [p, q] = [0xd2511f53n * c[0]!, 0xcd9e8d57n * c[2]!];
        c = [
          (q >> 32n) ^ c[1]! ^ k[0]!,
          q & 0xffffffffn,
          (p >> 32n) ^ c[3]! ^ k[1]!,
          p & 0xffffffffn,
        ];
        k = [BigInt.asUintN(32, k[0]! + 0x9e3779b9n), BigInt.asUintN(32, k[1]! + 0xbb67ae85n)];
      }
      return c.map(Number);
    };
    for (let i = 0; i < n; i++) {
      const r = philox(i);
      const u = r[0]! * 2.3283064e-10 + 1.16415e-10;
      const v = r[1]! * 2.3283064e-10 * 6.2831853;
      const s = Math.sqrt(-2 * Math.log(u));
      expectClose(
        out.view.subarray(i * 4, i * 4 + 4),
        [s * Math.sin(v), s * Math.cos(v), r[2]! * 2.3283064e-10, r[3]! * 2.3283064e-10],
        2e-5,
      );
    }
    const a = grid.put(
      BigUint64Array.from({ length: 65 }, () => BigInt(Math.floor(random() * 2 ** 53)) * 4099n),
    );
    const b = grid.put(
      BigInt64Array.from({ length: 65 }, () =>
        BigInt.asIntN(64, BigInt(Math.floor(random() * 2 ** 53)) * 4099n),
      ),
    );
    const o = grid.put(new BigUint64Array(65));
    launch(
      grid,
      'mulhi64',
      [{ i64: a.address }, { i64: b.address }, { i64: o.address }, { i32: 64 }],
      { grid: [1], block: [64] },
    );
    for (let i = 0; i < 64; i++) {
      const [a0, a1, b0, b1] = [a.view[i]!, a.view[i + 1]!, b.view[i]!, b.view[i + 1]!];
      const wide = BigInt.asUintN(128, a0 * a1 + (BigInt.asUintN(64, b0) << 64n));
      let wanted = ((a0 * a1) >> 64n) + ((b0 * b1) >> 64n);
      wanted = BigInt.asUintN(64, wanted) ^ (wide >> 64n) ^ BigInt.asUintN(64, wide);
      wanted += a0 / (a1 | 1n) + (b0 % (b1 | 1n));
      expect(o.view[i]).toBe(BigInt.asUintN(64, wanted));
    }
    expect(grid.module.failures).toEqual([]);
  });
});

each('k13_bitonic', (open) => {
  it('sorts', () => {
    const grid = open();
    const d = grid.put(Uint32Array.from(integers(1024, 2 ** 31)));
    const wanted = Uint32Array.from(d.view).sort();
    launch(grid, 'bitonic_sh', [{ i64: d.address }], { grid: [1], block: [1024] });
    expect(d.view).toEqual(wanted);
    const e = grid.put(Uint32Array.from(integers(256, 2 ** 31)));
    const sorted = Uint32Array.from(e.view).sort();
    for (let k = 2; k <= 256; k *= 2)
      for (let j = k / 2; j > 0; j /= 2)
        launch(grid, 'bitonic_step', [{ i64: e.address }, { i32: j }, { i32: k }], {
          grid: [4],
          block: [64],
        });
    expect(e.view).toEqual(sorted);
    const keys = grid.put(Uint32Array.from(integers(64, 16)));
    const ranks = grid.put(new Uint32Array(64));
    launch(
      grid,
      'radix_rank',
      [{ i64: keys.address }, { i64: ranks.address }, { i32: 1 }, { i32: 64 }],
      { grid: [1], block: [64] },
    );
    for (const warp of [0, 32]) {
      const lanes = Array.from({ length: 32 }, (_, i) => (keys.view[warp + i]! >> 1) & 1);
      const zeros = lanes.filter((bit) => !bit).length;
      lanes.forEach((bit, i) =>
        expect(ranks.view[warp + i]).toBe(
          bit
            ? zeros + lanes.slice(0, i).filter((b) => b).length
            : lanes.slice(0, i).filter((b) => !b).length,
        ),
      );
    }
  });
});

each('k14_printf', (open) => {
  it('printf, assert, trap, malloc', () => {
    const grid = open();
    const f = grid.put(Float32Array.from([1.5, 2.5]));
    launch(grid, 'hello', [{ i32: 2 }, { i64: f.address }], { grid: [1], block: [2] });
    expect(grid.printed.map(({ format }) => format)).toEqual([
      't %d of %d: %f %s\n',
      't %d of %d: %f %s\n',
    ]);
    f.view[1] = -1;
    expect(
      grid.run('hello', [{ i32: 2 }, { i64: f.address }], { grid: [1], block: [2] }).fault,
    ).toMatchObject({ kind: 4, thread: 1 });
    expect(grid.asserts).toEqual(['f[threadIdx.x]>=0.f']);
    const p = grid.put(new Int32Array(8));
    launch(grid, 'trapk', [{ i64: p.address }], { grid: [1], block: [1] });
    p.view[0] = 42;
    expect(grid.run('trapk', [{ i64: p.address }], { grid: [1], block: [1] }).fault?.kind).toBe(3);
    const pointers = grid.put(new BigUint64Array(4));
    launch(grid, 'dmalloc', [{ i64: pointers.address }], { grid: [1], block: [4] });
    expect(new Set(pointers.view).size).toBe(4);
  });
});

each('k15_coop', (open) => {
  it('tiles, coalesced groups, grid barrier, warp operations', () => {
    const grid = open();
    const x = grid.put(integers(64, 20));
    const out = grid.put(new Int32Array(64));
    launch(grid, 'cg_tile', [{ i64: x.address }, { i64: out.address }], { grid: [1], block: [64] });
    for (let i = 0; i < 64; i++) {
      const warp = [...x.view.subarray(i & 32, (i & 32) + 32)];
      const eight = x.view.subarray(i & ~7, (i & ~7) + 8);
      const lane = i & 31;
      const scan = warp.slice(0, lane + 1).reduce((a, b) => a + b, 0);
      const wanted =
        warp.reduce((a, b) => a + b, 0) +
        Math.max(...eight) +
        scan +
        (lane < 31 ? warp[lane + 1]! : warp[31]!) +
        (eight.some((v) => v > 3) ? 1 : 0);
      expect(out.view[i]).toBe(wanted);
    }
    const c = grid.put(new Int32Array(128));
    const chosen = grid.put(Int32Array.from({ length: 64 }, (_, i) => (i % 3) - 1));
    launch(grid, 'cg_coalesced', [{ i64: c.address }, { i64: chosen.address }], {
      grid: [1],
      block: [64],
    });
    const wanted = [...chosen.view.keys()].filter((i) => chosen.view[i]! > 0);
    expect(c.view[0]).toBe(wanted.length);
    expect([...c.view.subarray(1, 1 + wanted.length)].sort((a, b) => a - b)).toEqual(wanted);
    const a = grid.put(new Float32Array(300));
    launch(grid, 'cg_grid', [{ i64: a.address }, { i32: 300 }], {
      grid: [3],
      block: [64],
      interleave: true,
      fuel: 10000,
    });
    expect(new Set(a.view)).toEqual(new Set([1.875]));
    const o = grid.put(new Int32Array(8));
    launch(grid, 'warpops', [{ i64: o.address }, { i32: 5 }], { grid: [1], block: [64] });
    expect([...o.view.subarray(0, 4)]).toEqual([1 + 1 - 1, -1, -1 + 1, 64 + 1 + 1]);
  });
});

each('k16_async', (open) => {
  it('cp.async pipelines and mbarriers', () => {
    const grid = open();
    expect(
      grid.module.failures.every(
        ({ error }) => error instanceof PtxError && error.code === 'unsupported',
      ),
    ).toBe(true);
    const n = 6;
    const x = grid.put(floats(n * 512));
    const y = grid.put(new Float32Array(n * 512));
    launch(grid, 'pipe_copy', [{ i64: x.address }, { i64: y.address }, { i32: n }], {
      grid: [1],
      block: [128],
    });
    for (let i = 0; i < (n - 1) * 512; i++)
      expect(y.view[i]).toBe(x.view[(i >> 9) * 512 + ((((i >> 2) & 127) ^ 1) << 2) + (i & 3)]);
    const o = grid.put(new Int32Array(64));
    launch(grid, 'bar_arrive', [{ i64: o.address }], { grid: [1], block: [64] });
    expect(o.view[0]).toBeGreaterThanOrEqual(2);
  });
});

each('k17_calls', (open) => {
  it('recursion, pointers, virtual functions, structures, local arrays, switch', () => {
    const grid = open();
    const o = grid.put(new Int32Array(64));
    const shape = { grid: [1] as [number], block: [32] as [number] };
    launch(grid, 'recursion', [{ i64: o.address }], shape);
    const fib = (k: number): number => (k < 2 ? k : fib(k - 1) + fib(k - 2));
    for (let i = 0; i < 32; i++) expect(o.view[i]).toBe(fib(i & 15));
    const a = grid.put(floats(32));
    const b = grid.put(floats(32));
    const c = grid.put(new Float32Array(32));
    const k = grid.put(integers(32, 30));
    launch(
      grid,
      'fptr',
      [a, b, c, k].map(({ address }) => ({ i64: address })),
      shape,
    );
    c.view.forEach((value, i) =>
      expect(value).toBe(
        fround(
          [a.view[i]! + b.view[i]!, a.view[i]! * b.view[i]!, a.view[i]! - b.view[i]!][
            k.view[i]! % 3
          ]!,
        ),
      ),
    );
    const before = [...a.view];
    launch(grid, 'virt', [{ i64: a.address }, { i32: 1 }], shape);
    launch(grid, 'virt', [{ i64: a.address }, { i32: 0 }], shape);
    before.forEach((value, i) => expect(a.view[i]).toBe(fround(3 * value)));
    const big = new Uint8Array(52);
    new Float32Array(big.buffer).set([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    new Int32Array(big.buffer)[12] = 1000;
    b.view[0] = 2;
    launch(grid, 'structs', [{ bytes: big }, { i64: b.address }], { grid: [1], block: [1] });
    expect(b.view[0]).toBe(2 * 78 + 1000);
    // A walk that only increases ends.
    const input = grid.put(integers(100, 40).map((value, i) => i + 1 + value));
    launch(grid, 'localarr', [{ i64: input.address }, { i64: o.address }, { i32: 20 }], shape);
    for (let t = 0; t < 32; t++) {
      const stack = [t];
      let sum = 0;
      for (let guard = 0; stack.length && guard < 100000; guard++) {
        const x = stack.pop()!;
        sum += x;
        if (x < 20 && stack.length < 60) {
          stack.push(input.view[x]!);
          if (input.view[x]! & 1) stack.push(input.view[x + 1]!);
        }
      }
      if (!stack.length) expect(o.view[t]).toBe(sum | 0);
    }
    const op = grid.put(Int32Array.from({ length: 8 }, (_, i) => [0, 1, 2, 3, 4, 6, 10, 5][i]!));
    const x = grid.put(Int32Array.from([5, -6, 7, 8, -9, 255, 3, 4]));
    const out = grid.put(Int32Array.from({ length: 8 }, (_, i) => i * 10));
    launch(
      grid,
      'sw',
      [{ i64: op.address }, { i64: x.address }, { i64: out.address }, { i32: 8 }],
      shape,
    );
    expect([...out.view]).toEqual([6, 36, -7, 8 ^ 0x55, -9 >> 2, 8, 0, 14]);
  });
});

each('k18_math', (open) => {
  it('mathf and mathd stay near JavaScript', () => {
    const grid = open();
    const d = grid.put(Float64Array.from({ length: 50 }, (_, i) => 0.05 + i * 0.11));
    const out = grid.put(new Float64Array(50));
    launch(grid, 'mathd', [{ i64: d.address }, { i64: out.address }, { i32: 50 }], {
      grid: [1],
      block: [64],
    });
    const erf = (x: number): number => {
      let [sum, term] = [x, x];
      for (let n = 1; n < 200; n++) {
        term *= (-x * x) / n;
        sum += term / (2 * n + 1);
      }
      return x > 4 ? 1 : (2 / Math.sqrt(Math.PI)) * sum;
    };
    const even = (x: number): number =>
      Math.round(x) - (x % 1 === 0.5 && Math.round(x) % 2 ? 1 : 0);
    expectClose(
      out.view,
      Float64Array.from(
        d.view,
        (v) =>
          Math.sin(v) +
          Math.cos(v) +
          Math.exp(v) +
          Math.log(v) +
          v ** 2.5 +
          erf(v) +
          Math.tanh(v) +
          Math.sqrt(v) +
          Math.cbrt(v) +
          (v % 3) +
          Math.floor(v) +
          even(v) +
          1 / v +
          1 / Math.sqrt(v),
      ),
      1e-7,
    );
    const f = grid.put(new Float32Array(64).fill(0.7));
    const o = grid.put(new Float32Array(64));
    launch(grid, 'mathf', [{ i64: f.address }, { i64: o.address }, { i32: 64 }], {
      grid: [1],
      block: [64],
    });
    expect(Number.isFinite(o.view[0])).toBe(true);
    f.view.forEach((_, i) => {
      f.view[i] = i / 7;
    });
    launch(grid, 'fastdiv', [{ i64: f.address }, { i64: o.address }], { grid: [1], block: [64] });
    f.view.forEach((value, i) => expect(o.view[i]).toBe(fround(value / 3)));
  });
});

each('k18b_fastmath', (open) => {
  it('agrees with the exact library to its accuracy', () => {
    const fast = open();
    const exact = new Grid(sample('k18_math'));
    const values = Float32Array.from({ length: 60 }, (_, i) => 0.05 + i * 0.01);
    const results = [
      [fast, 'mathf_fm'],
      [exact, 'mathf'],
    ].map((pair) => {
      const [grid, name] = pair as [Grid, string];
      const x = grid.put(values);
      const y = grid.put(new Float32Array(60));
      launch(grid, name, [{ i64: x.address }, { i64: y.address }, { i32: 60 }], {
        grid: [1],
        block: [64],
      });
      return y.view;
    });
    expectClose(results[0]!, results[1]!, 1e-4);
  });
});

each('k19_spmv', (open) => {
  it('csr_vector, life, blackscholes, sha_like', () => {
    const grid = open();
    const rows = 20;
    const rp = grid.put(Int32Array.from({ length: rows + 1 }, (_, i) => i * 37));
    const ci = grid.put(integers(rows * 37, 100));
    const v = grid.put(Float32Array.from(integers(rows * 37, 9)));
    const x = grid.put(Float32Array.from(integers(100, 9)));
    const y = grid.put(new Float32Array(rows));
    launch(
      grid,
      'csr_vector',
      [{ i32: rows }, ...[rp, ci, v, x, y].map(({ address }) => ({ i64: address }))],
      { grid: [5], block: [128] },
    );
    for (let r = 0; r < rows; r++) {
      let sum = 0;
      for (let j = r * 37; j < (r + 1) * 37; j++) sum += v.view[j]! * x.view[ci.view[j]!]!;
      expect(y.view[r]).toBe(sum);
    }
    const [w, h] = [20, 12];
    const a = grid.put(Uint8Array.from(integers(w * h, 2)));
    const b = grid.put(new Uint8Array(w * h));
    launch(grid, 'life', [{ i64: a.address }, { i64: b.address }, { i32: w }, { i32: h }], {
      grid: [2, 2],
      block: [16, 8],
    });
    b.view.forEach((value, at) => {
      let n = 0;
      for (let dy = -1; dy <= 1; dy++)
        for (let dx = -1; dx <= 1; dx++)
          if (dx || dy)
            n += a.view[((Math.floor(at / w) + dy + h) % h) * w + (((at % w) + dx + w) % w)]!;
      expect(value).toBe(n === 3 || (n === 2 && a.view[at]) ? 1 : 0);
    });
    const input = grid.put(Uint32Array.from(integers(16 * 32, 2 ** 31)));
    const o = grid.put(new Uint32Array(32));
    launch(grid, 'sha_like', [{ i64: input.address }, { i64: o.address }, { i32: 32 }], {
      grid: [1],
      block: [32],
    });
    for (let t = 0; t < 32; t++) {
      const words = [...input.view.subarray(t * 16, t * 16 + 16)];
      let [p, q, r, s] = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
      for (let i = 0; i < 64; i++) {
        const f =
          i < 16
            ? (q & r) | (~q & s)
            : i < 32
              ? q ^ r ^ s
              : i < 48
                ? (q & r) | (q & s) | (r & s)
                : r ^ (q | ~s);
        const z = (p + f + words[i & 15]!) >>> 0;
        p = s;
        s = r;
        r = q;
        q = (q + ((z << ((i % 31) + 1)) | (z >>> (31 - (i % 31))))) >>> 0;
        words[i & 15] = (Math.imul(words[i & 15]!, 5) + words[(i + 3) & 15]!) >>> 0;
      }
      expect(o.view[t]).toBe((p + q + r + s) >>> 0);
    }
  });
});

each('k20_switch_goto', (open) => {
  it('a dense switch, and jumps into loops', () => {
    const grid = open();
    const op = grid.put(Int32Array.from({ length: 40 }, (_, i) => i));
    const a = grid.put(integers(64, 1000));
    const before = Int32Array.from(a.view);
    // Threads read what other threads write: one thread runs at a time.
    launch(grid, 'big', [{ i64: op.address }, { i64: a.address }], { grid: [1], block: [40] });
    const state = Int32Array.from(before);
    for (let t = 0; t < 40; t++) {
      let x = state[t]!;
      if (t < 32) {
        x = (Math.imul(x, t) + state[t]!) | 0;
        if (x & t) x ^= state[t + 1]!;
      }
      state[t] = x;
    }
    expect(a.view).toEqual(state);
    for (const n of [6, 9, 30, 31]) {
      const data = grid.put(Int32Array.from({ length: 256 }, (_, i) => (i % 3) + 1));
      launch(grid, 'irrg', [{ i64: data.address }, { i32: n }], { grid: [1], block: [1], fuel: 1 });
      const source = Array.from({ length: 256 }, (_, i) => (i % 3) + 1);
      let i = 0;
      let at = n & 1 ? 'B' : 'A';
      for (;;) {
        if (at === 'A') {
          i += source[i]!;
          if (i > n) break;
        }
        i = Math.imul(i, source[i + 1]!);
        if (i < 7) at = 'A';
        else if (i < 90) at = 'B';
        else break;
      }
      expect(data.view[0]).toBe(i);
    }
  });
});

it('a kernel that needs what is not covered is left out of its module, and says why', () => {
  const { kernels, failures } = compilePtx(
    `${sample('k01_saxpy')}\n.visible .entry refused()\n{\n  ` +
      `tcgen05.wait::ld.sync.aligned;\n  ret;\n}\n`,
  );
  expect(kernels.map(({ name }) => name)).toContain('saxpy');
  expect(failures.map(({ kernel }) => kernel)).toEqual(['refused']);
  expect(failures[0]!.error.message).toContain('tcgen05.wait::ld.sync.aligned');
});

it('a module of which nothing compiles throws', () => {
  expect(() => compilePtx(kernelText('k', '', 'tcgen05.wait::ld.sync.aligned; ret;'))).toThrow(
    PtxError,
  );
});
