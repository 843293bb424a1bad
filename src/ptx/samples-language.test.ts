/** Samples of features of CUDA C++: printf, cooperative groups, asynchronous copies, functions. */
import { expect, it } from 'vitest';
import { PtxError, compilePtx } from './index.js';
import { Grid, kernelText, sample } from './run-grid.test-support.js';
import { each, expectClose, floats, fround, integers, launch } from './samples.test-support.js';

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
