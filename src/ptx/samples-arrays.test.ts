/** Samples that go through arrays and matrices, against plain JavaScript. */
import { expect, it } from 'vitest';
import {
  each,
  expectClose,
  floats,
  fma,
  fround,
  integers,
  launch,
} from './samples.test-support.js';

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
