// Test only: well-known kernels, as trees. They are compared with nvcc's output for the same
// kernels.

import type { Expression, KernelTree } from '../tree.js';
import {
  TreeBuilder,
  add,
  approximate,
  as,
  binary,
  compare,
  conditional,
  constant,
  convert,
  fma,
  logical,
  lt,
  mul,
  nowhere,
  shuffle,
  sub,
  unary,
} from './trees.test-support.js';
import type { Elements, Operand, Variable } from './trees.test-support.js';

const f32 = (value: number): Expression => constant(value, 'f32');
const u32 = (value: number): Expression => constant(value, 'u32');

function saxpy(): KernelTree {
  const t = new TreeBuilder('saxpy');
  const [a, x, y] = [t.scalar('a', 'f32'), t.tensor('x', 'f32', 'input'), t.tensor('y', 'f32')];
  const i = t.variable(t.special('globalId.x'));
  t.if(lt(i.value, y.length), () => y.put(i.value, fma(a, x.at(i.value), y.at(i.value))));
  return t.tree;
}

function saxpyStride(): KernelTree {
  const t = new TreeBuilder('saxpy_stride');
  const [a, x, y] = [t.scalar('a', 'f32'), t.tensor('x', 'f32', 'input'), t.tensor('y', 'f32')];
  t.for(t.special('globalId.x'), y.length, t.special('globalSize.x'), (i) =>
    y.put(i, fma(a, x.at(i), y.at(i))),
  );
  return t.tree;
}

function chain(): KernelTree {
  const t = new TreeBuilder('chain');
  const [x, y, z] = [
    t.tensor('x', 'f32', 'input'),
    t.tensor('y', 'f32', 'input'),
    t.tensor('z', 'f32', 'output'),
  ];
  const i = t.variable(t.special('globalId.x'));
  t.if(lt(i.value, z.length), () => {
    const v = t.variable(x.at(i.value));
    const w = t.variable(fma(v.value, v.value, y.at(i.value)));
    z.put(
      i.value,
      binary(
        'div',
        unary('sqrt', binary('max', w.value, f32(0))),
        add(unary('abs', v.value), f32(1)),
      ),
    );
  });
  return t.tree;
}

function transpose(): KernelTree {
  const t = new TreeBuilder('transpose');
  const [input, output] = [t.tensor('in', 'f32', 'input'), t.tensor('out', 'f32', 'output')];
  const [w, h] = [t.scalar('w', 'i32'), t.scalar('h', 'i32')];
  const tile = t.array('shared', 'f32', 32 * 33);
  const [tx, ty] = [t.special('threadIdx.x'), t.special('threadIdx.y')];
  const x = t.variable(add(mul(t.special('blockIdx.x'), 32), tx));
  const y = t.variable(add(mul(t.special('blockIdx.y'), 32), ty));
  t.for(0, 32, 8, (j) =>
    t.if(logical('and', lt(x.value, w), lt(add(y.value, j), h)), () =>
      tile.put(add(mul(add(ty, j), 33), tx), input.at(add(mul(add(y.value, j), w), x.value))),
    ),
  );
  t.sync();
  x.set(add(mul(t.special('blockIdx.y'), 32), tx));
  y.set(add(mul(t.special('blockIdx.x'), 32), ty));
  t.for(0, 32, 8, (j) =>
    t.if(logical('and', lt(x.value, h), lt(add(y.value, j), w)), () =>
      output.put(add(mul(add(y.value, j), h), x.value), tile.at(add(mul(tx, 33), add(ty, j)))),
    ),
  );
  return t.tree;
}

function warpSum(t: TreeBuilder, v: Variable, mode: 'down' | 'bfly' = 'down'): void {
  const o = t.variable(16);
  t.loop(
    compare('gt', o.value, 0),
    () => v.set(add(v.value, shuffle(mode, v.value, o.value))),
    () => o.set(binary('shr', o.value, 1)),
  );
}

function reduce(): KernelTree {
  const t = new TreeBuilder('reduce_sum');
  const [input, output] = [t.tensor('in', 'f32', 'input'), t.tensor('out', 'f32')];
  const tile = t.array('shared', 'f32', 32);
  const v = t.variable(f32(0));
  t.for(t.special('globalId.x'), input.length, t.special('globalSize.x'), (i) =>
    v.set(add(v.value, input.at(i))),
  );
  warpSum(t, v);
  const [lane, w] = [
    t.variable(binary('and', t.special('threadIdx.x'), 31)),
    t.variable(binary('shr', t.special('threadIdx.x'), 5)),
  ];
  t.if(compare('eq', lane.value, 0), () => tile.put(w.value, v.value));
  t.sync();
  v.set(
    conditional(
      lt(t.special('threadIdx.x'), binary('div', t.special('blockDim.x'), 32)),
      tile.at(lane.value),
      f32(0),
    ),
  );
  t.if(compare('eq', w.value, 0), () => warpSum(t, v));
  t.if(compare('eq', t.special('threadIdx.x'), 0), () =>
    t.push({ kind: 'evaluate', span: nowhere, value: output.atomic('add', 0, v.value) }),
  );
  return t.tree;
}

const exp = (value: Expression): Expression =>
  approximate('ex2', mul(value, f32(Math.fround(1.4426950408889634))));

function blockReduce(
  t: TreeBuilder,
  v: Variable,
  tile: Elements,
  join: (a: Expression, b: Expression) => Expression,
  start: Expression,
): void {
  const o = t.variable(16);
  t.loop(
    compare('gt', o.value, 0),
    () => v.set(join(v.value, shuffle('bfly', v.value, o.value))),
    () => o.set(binary('shr', o.value, 1)),
  );
  const tid = t.special('threadIdx.x');
  t.if(compare('eq', binary('and', tid, 31), 0), () => tile.put(binary('shr', tid, 5), v.value));
  t.sync();
  v.set(start);
  t.for(0, binary('div', t.special('blockDim.x'), 32), 1, (i) => v.set(join(v.value, tile.at(i))));
}

function softmax(): KernelTree {
  const t = new TreeBuilder('softmax');
  const [x, y, cols] = [
    t.tensor('x', 'f32', 'input'),
    t.tensor('y', 'f32', 'output'),
    t.scalar('cols', 'i32'),
  ];
  const [sm, ss] = [t.array('shared', 'f32', 32), t.array('shared', 'f32', 32)];
  const row = t.variable(mul(t.special('blockIdx.x'), cols));
  const tid = t.special('threadIdx.x');
  const m = t.variable(f32(-Infinity));
  t.for(tid, cols, t.special('blockDim.x'), (i) =>
    m.set(binary('max', m.value, x.at(add(row.value, i)))),
  );
  blockReduce(t, m, sm, (a, b) => binary('max', a, b), f32(-Infinity));
  const s = t.variable(f32(0));
  t.for(tid, cols, t.special('blockDim.x'), (i) =>
    s.set(add(s.value, exp(sub(x.at(add(row.value, i)), m.value)))),
  );
  blockReduce(t, s, ss, (a, b) => add(a, b), f32(0));
  t.for(tid, cols, t.special('blockDim.x'), (i) =>
    y.put(add(row.value, i), binary('div', exp(sub(x.at(add(row.value, i)), m.value)), s.value)),
  );
  return t.tree;
}

function rmsNorm(): KernelTree {
  const t = new TreeBuilder('rms_norm');
  const [x, w, y] = [
    t.tensor('x', 'f32', 'input'),
    t.tensor('w', 'f32', 'input'),
    t.tensor('y', 'f32', 'output'),
  ];
  const [cols, eps] = [t.scalar('cols', 'i32'), t.scalar('eps', 'f32')];
  const tile = t.array('shared', 'f32', 32);
  const row = t.variable(mul(t.special('blockIdx.x'), cols));
  const tid = t.special('threadIdx.x');
  const s = t.variable(f32(0));
  t.for(tid, cols, t.special('blockDim.x'), (i) => {
    const v = t.variable(x.at(add(row.value, i)));
    s.set(fma(v.value, v.value, s.value));
  });
  blockReduce(t, s, tile, (a, b) => add(a, b), f32(0));
  const r = t.variable(
    approximate('rsqrt', add(binary('div', s.value, convert(cols, 'f32')), eps)),
  );
  t.for(tid, cols, t.special('blockDim.x'), (i) =>
    y.put(add(row.value, i), mul(mul(x.at(add(row.value, i)), r.value), w.at(i))),
  );
  return t.tree;
}

function histogram(): KernelTree {
  const t = new TreeBuilder('hist256');
  const [d, h] = [t.tensor('d', 'u8', 'input'), t.tensor('h', 'u32')];
  const s = t.array('shared', 'u32', 256);
  const tid = t.special('threadIdx.x');
  t.for(tid, 256, t.special('blockDim.x'), (i) => s.put(i, 0));
  t.sync();
  const run = (value: Expression): void => t.push({ kind: 'evaluate', span: nowhere, value });
  t.for(t.special('globalId.x'), d.length, t.special('globalSize.x'), (i) =>
    run(s.atomic('add', d.at(i), 1, undefined, 'block')),
  );
  t.sync();
  t.for(tid, 256, t.special('blockDim.x'), (i) => run(h.atomic('add', i, s.at(i))));
  return t.tree;
}

function scan(): KernelTree {
  const t = new TreeBuilder('scan_block');
  const [input, output, sums] = [
    t.tensor('in', 'i32', 'input'),
    t.tensor('out', 'i32', 'output'),
    t.tensor('sums', 'i32', 'output'),
  ];
  const w = t.array('shared', 'i32', 32);
  const [i, tid] = [t.variable(t.special('globalId.x')), t.special('threadIdx.x')];
  const v = t.variable(conditional(lt(i.value, input.length), input.at(i.value), 0));
  const lane = t.variable(binary('and', tid, 31));
  const sweep = (s: Variable): void => {
    const o = t.variable(1);
    t.loop(
      lt(o.value, 32),
      () => {
        const above = t.variable(shuffle('up', s.value, o.value));
        t.if(compare('ge', lane.value, o.value), () => s.set(add(s.value, above.value)));
      },
      () => o.set(binary('shl', o.value, 1)),
    );
  };
  sweep(v);
  t.if(compare('eq', lane.value, 31), () => w.put(binary('shr', tid, 5), v.value));
  t.sync();
  t.if(lt(tid, 32), () => {
    const s = t.variable(
      conditional(lt(lane.value, binary('shr', t.special('blockDim.x'), 5)), w.at(lane.value), 0),
    );
    sweep(s);
    w.put(lane.value, s.value);
  });
  t.sync();
  t.if(compare('ge', tid, 32), () => v.set(add(v.value, w.at(sub(binary('shr', tid, 5), 1)))));
  t.if(lt(i.value, input.length), () => output.put(i.value, v.value));
  t.if(compare('eq', tid, sub(t.special('blockDim.x'), 1)), () =>
    sums.put(t.special('blockIdx.x'), v.value),
  );
  return t.tree;
}

function nbody(): KernelTree {
  const t = new TreeBuilder('nbody');
  const [p, v] = [t.tensor('p', 'f32', 'input'), t.tensor('v', 'f32')];
  const [n, dt, eps] = [t.scalar('n', 'i32'), t.scalar('dt', 'f32'), t.scalar('eps', 'f32')];
  const tile = t.array('shared', 'f32', 512);
  const [i, tid] = [t.variable(t.special('globalId.x')), t.special('threadIdx.x')];
  const me = [0, 1, 2].map((c) => t.variable(p.at(add(mul(i.value, 4), c))));
  const a = [0, 1, 2].map(() => t.variable(f32(0)));
  t.for(0, n, 128, (k) => {
    for (let c = 0; c < 4; c++) tile.put(add(mul(tid, 4), c), p.at(add(mul(add(k, tid), 4), c)));
    t.sync();
    t.for(0, 128, 1, (j) => {
      const d = [0, 1, 2].map((c) => t.variable(sub(tile.at(add(mul(j, 4), c)), me[c]!.value)));
      const d2 = t.variable(
        fma(
          d[0]!.value,
          d[0]!.value,
          fma(d[1]!.value, d[1]!.value, fma(d[2]!.value, d[2]!.value, eps)),
        ),
      );
      const r = t.variable(approximate('rsqrt', d2.value));
      const s = t.variable(mul(mul(mul(tile.at(add(mul(j, 4), 3)), r.value), r.value), r.value));
      for (let c = 0; c < 3; c++) a[c]!.set(fma(d[c]!.value, s.value, a[c]!.value));
    });
    t.sync();
  });
  const q = [0, 1, 2].map((c) => t.variable(fma(a[c]!.value, dt, v.at(add(mul(i.value, 4), c)))));
  q.forEach((value, c) => v.put(add(mul(i.value, 4), c), value.value));
  v.put(
    add(mul(i.value, 4), 3),
    unary(
      'sqrt',
      fma(q[2]!.value, q[2]!.value, fma(q[1]!.value, q[1]!.value, mul(q[0]!.value, q[0]!.value))),
    ),
  );
  return t.tree;
}

function mandelbrot(): KernelTree {
  const t = new TreeBuilder('mandel');
  const out = t.tensor('o', 'i32', 'output');
  const [w, h] = [t.scalar('w', 'i32'), t.scalar('h', 'i32')];
  const [x0, y0, s] = [t.scalar('x0', 'f32'), t.scalar('y0', 'f32'), t.scalar('s', 'f32')];
  const most = t.scalar('maxit', 'i32');
  const [x, y] = [t.variable(t.special('globalId.x')), t.variable(t.special('globalId.y'))];
  t.if(logical('or', compare('ge', x.value, w), compare('ge', y.value, h)), () => t.return());
  const cx = t.variable(fma(convert(x.value, 'f32'), s, x0));
  const cy = t.variable(fma(convert(y.value, 'f32'), s, y0));
  const [zx, zy, i] = [t.variable(f32(0)), t.variable(f32(0)), t.variable(0)];
  t.loop(
    logical('and', lt(i.value, most), lt(fma(zx.value, zx.value, mul(zy.value, zy.value)), f32(4))),
    () => {
      const next = t.variable(
        add(fma(zx.value, zx.value, unary('neg', mul(zy.value, zy.value))), cx.value),
      );
      zy.set(fma(mul(f32(2), zx.value), zy.value, cy.value));
      zx.set(next.value);
      i.set(add(i.value, 1));
    },
  );
  out.put(add(mul(y.value, w), x.value), i.value);
  return t.tree;
}

function philox(): KernelTree {
  const t = new TreeBuilder('philox');
  const [out, seed] = [t.tensor('o', 'f32', 'output'), t.scalar('seed', 'u64')];
  const n = t.scalar('n', 'i32');
  const i = t.variable(t.special('globalId.x'));
  t.if(compare('ge', i.value, n), () => t.return());
  const c = [convert(i.value, 'u32'), u32(0), u32(0), u32(0)].map((value) =>
    t.variable(value, 'u32'),
  );
  const k = [convert(seed, 'u32'), convert(binary('shr', seed, u32(32)), 'u32')].map((value) =>
    t.variable(value, 'u32'),
  );
  t.for(0, 10, 1, () => {
    const [h0, l0] = [
      t.variable(binary('mulhi', u32(0xd2511f53), c[0]!.value), 'u32'),
      t.variable(mul(u32(0xd2511f53), c[0]!.value), 'u32'),
    ];
    const [h1, l1] = [
      t.variable(binary('mulhi', u32(0xcd9e8d57), c[2]!.value), 'u32'),
      t.variable(mul(u32(0xcd9e8d57), c[2]!.value), 'u32'),
    ];
    const xor = (a: Expression, b: Expression, d: Expression): Expression =>
      binary('xor', binary('xor', a, b), d);
    const next: Operand[] = [
      xor(h1.value, c[1]!.value, k[0]!.value),
      l1.value,
      xor(h0.value, c[3]!.value, k[1]!.value),
      l0.value,
    ];
    const held = next.map((value) => t.variable(value, 'u32'));
    held.forEach((value, at) => c[at]!.set(value.value));
    k[0]!.set(add(k[0]!.value, u32(0x9e3779b9)));
    k[1]!.set(add(k[1]!.value, u32(0xbb67ae85)));
  });
  c.forEach((value, at) =>
    out.put(
      add(mul(i.value, 4), at),
      mul(convert(value.value, 'f32'), as(2.3283064365386963e-10, 'f32')),
    ),
  );
  return t.tree;
}

export const knownKernels: Readonly<Record<string, () => KernelTree>> = {
  saxpy,
  saxpyStride,
  chain,
  transpose,
  reduce,
  softmax,
  rmsNorm,
  histogram,
  scan,
  nbody,
  mandelbrot,
  philox,
};
