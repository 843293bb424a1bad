/** Samples that make pictures, random numbers and products, against plain JavaScript. */
import { expect, it } from 'vitest';
import { TEXTURE, TEXTURE_KIND, TEXTURE_MAGIC } from './index.js';
import {
  each,
  expectClose,
  floats,
  fround,
  integers,
  launch,
  random,
} from './samples.test-support.js';

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
