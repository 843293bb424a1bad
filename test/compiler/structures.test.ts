/**
 * Structures behave as in JavaScript, or the kernel is refused: bodies run as compiled kernels, and
 * as JavaScript with objects.
 */
import { describe, expect, test } from 'vitest';
import type { DeviceFunctionText } from '../../src/compiler/signature.js';
import type { StructLayout } from '../../src/ground/struct-layout.js';
import { readKernel } from '../../src/compiler/read/read-kernel.js';
import { runKernel } from './emit/run-kernel.js';

const struct: StructLayout = {
  bytes: 8,
  align: 4,
  fields: [
    { name: 'k', storage: 'i32', offset: 0 },
    { name: 'v', storage: 'i32', offset: 4 },
  ],
};

interface Pair {
  k: number;
  v: number;
}

const USES: Readonly<Record<string, string>> = {
  same: '(p) => p',
  set: '(p, v) => { p.v = v; }',
  next: '(p) => { if (p.k > 100) return p; p.k += 1; return p; }',
  larger: '(p, q) => { if (p.k > q.k) return p; return q; }',
  moved: '(p) => ({ k: p.k + 1, v: p.v })',
  cadd: '(p, q) => ({ k: p.k + q.k, v: p.v * q.v })',
};

const start = [
  [5, 50],
  [3, 30],
  [9, 90],
  [1, 10],
] as const;

function source(body: string): Parameters<typeof readKernel>[0] {
  return {
    name: 'structures',
    indexType: 'i32',
    text: `({ s, o, a, b }, gpu) => { ${body} }`,
    signature: {
      s: { kind: 'tensor', element: { struct }, access: 'inout', rank: 1 },
      o: { kind: 'tensor', element: { storage: 'i32' }, access: 'inout', rank: 1 },
      a: { kind: 'scalar', storage: 'i32' },
      b: { kind: 'scalar', storage: 'i32' },
    },
    uses: Object.fromEntries(
      Object.entries(USES).map(([name, text]): [string, DeviceFunctionText] => [
        name,
        { text, uses: {} },
      ]),
    ),
  };
}

function compiled(body: string): { s: number[]; o: number[] } {
  // The tail uses all arguments, so that the kernel has all of them.
  const text = `${body}; o[7] = o[7] + s[0].k * 0 + a * 0 + b * 0;`;
  const { of } = runKernel(readKernel(source(text)), {
    values: { s: Int32Array.from(start.flat()), o: new Int32Array(8), a: 7, b: 4 },
    block: [1, 1, 1],
    shown: false,
  });
  return { s: [...of<Int32Array>('s')], o: [...of<Int32Array>('o')] };
}

function inJavaScript(body: string): { s: number[]; o: number[] } {
  const s: Pair[] = start.map(([k, v]) => ({ k, v }));
  const o = new Int32Array(8);
  const gpu: unknown = Object.fromEntries(
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- what is compared with
    Object.entries(USES).map(([name, text]) => [name, new Function(`return ${text}`)() as unknown]),
  );
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- as above
  (new Function('s', 'o', 'a', 'b', 'gpu', body) as (...args: readonly unknown[]) => void)(
    s,
    o,
    7,
    4,
    gpu,
  );
  return { s: s.flatMap(({ k, v }) => [k, v]), o: [...o] };
}

describe('as in JavaScript', () => {
  test.each([
    'const t = s[0]; s[0] = s[1]; s[1] = t',
    'let t = s[0]; s[0] = s[1]; s[1] = t',
    'const x = s[0], y = s[1]; s[0] = y; s[1] = x',
    'for (let i = 1; i < 4; i++) { const key = s[i]; let j = i - 1; while (j >= 0 && s[j].k ' +
      '> key.k) { s[j + 1] = s[j]; j--; } s[j + 1] = key; }',
    'const first = s[0]; s[0] = { k: 9, v: 8 }; o[0] = first.k; o[1] = s[0].v',
    'const node = s[1]; node.v = 7; o[0] = s[1].v',
    'const node = s[1]; s[1].v = 7; o[0] = node.v',
    'let n = { k: a, v: 1 }; const p = n; n = { k: b + 10, v: 2 }; o[0] = p.k; o[1] = n.k',
    'let x = { k: a, v: 0 }, y = { k: b, v: 1 }; const t = x; x = y; y = t; o[0] = x.k * 10 + y.k',
    'let x = { k: 1, v: 2 }; for (let i = 0; i < 4; i++) { const z = x; x = { k: z.k - z.v, ' +
      'v: z.v + z.k }; x = { k: x.k + z.k, v: x.v }; } o[0] = x.k; o[1] = x.v',
    'let hit = { k: 1000, v: -1 }; for (let i = 0; i < 4; i++) { const old = hit; hit = { k: ' +
      's[i].k, v: i }; if (old.k <= hit.k) hit = old; } o[0] = hit.k; o[1] = hit.v',
    'let n = { p: { k: a } }; const q = n.p; n = { p: { k: 77 } }; o[0] = q.k; o[1] = n.p.k',
    'let st = { k: a, v: 0 }; const old = st; st = { k: old.k + 1, v: 5 }; o[0] = old.k * ' +
      '100 + st.k',
    'let z = { k: a, v: 3 }; const w = gpu.same(z); z = { k: 9, v: 9 }; o[0] = w.k + z.v',
    'let z = { k: a, v: 3 }; const w = gpu.cadd(z, (z = { k: 1, v: 2 }, z)); o[0] = w.k; ' +
      'o[1] = w.v',
    'let q = { k: 1, v: 1 }; gpu.set(q, 42); o[0] = q.v',
    'const q = { k: 1, v: 1 }; const p = q; p.v = b + 50; o[0] = q.v; o[1] = p.v',
    'const q = { k: 1, v: 1 }; const p = q; q.v = b + 50; o[0] = q.v; o[1] = p.v',
    'const q = { k: a, v: 0 }; q.k += 1; const p = q; p.k = 50; o[0] = q.k',
    'const x = { k: a, v: 0 }; const y = { x }; y.x.k = 77; o[0] = y.x.k',
    'const x = { k: a, v: 0 }; const y = { x, n: 2 }; o[0] = y.x.k + y.n',
    'let st = { k: a, v: 0 }; for (let i = 0; i < 3; i++) st = gpu.next(st); o[0] = st.k',
    'const st = { k: a, v: 0 }; gpu.next(gpu.next(st)); o[0] = st.k',
    'let best = s[0]; for (let i = 1; i < 4; i++) best = gpu.larger(best, s[i]); o[0] = best.v',
    'let best = { k: -1, v: 0 }; for (let i = 0; i < 4; i++) { const h = { k: 0, v: i }; h.k ' +
      '= s[i].k; if (h.k > best.k) best = h; } o[0] = best.v; o[1] = best.k',
    'let node = s[0]; for (let i = 0; i < 3; i++) node = s[node.k % 4]; o[0] = node.v',
    'const q = { ...s[0] }; q.v = 1; o[0] = s[0].v + q.v',
    'const q = { k: a, v: b }; const p = { ...q, v: 9 }; q.k = 1; o[0] = p.k; o[1] = p.v; ' +
      'o[2] = q.k',
    'const q = a > b ? s[0] : s[1]; o[0] = q.v',
    'let acc = { k: 0, v: 0 }; for (let i = 0; i < 4; i++) { acc.k += s[i].k; acc.v += ' +
      's[i].v; } o[0] = acc.k; o[1] = acc.v',
    'const st = { k: a, v: 0 }; const t = gpu.next(st); t.v = 8; o[0] = st.v; o[1] = st.k',
    's[0] = { k: 1, v: 2 }; const e = s[0]; s[0].v = 9; o[0] = e.v',
    'const c = s[2]; const d = gpu.moved(c); s[2] = d; o[0] = c.k; o[1] = s[2].k',
    'const t = { p: s[0], n: s[1].v }; s[0] = { k: 100, v: 200 }; s[1] = s[2]; o[0] = t.p.k; ' +
      'o[1] = t.p.v; o[2] = t.n',
    'const x = { k: a, v: 0 }; const y = { x }; y.x.k = 77; o[0] = x.k',
    'const y = { x: { k: a, v: 0 }, z: { k: b, v: 1 }, n: 1 }; y.x.k = 77; y.z.v += 3; o[0] ' +
      '= y.x.k; o[1] = y.z.v; o[2] = y.n',
    'const y = { x: { k: a, v: 0 } }; const z = y.x; z.v = 5; y.x.k = 77; o[0] = z.k; o[1] = y.x.v',
    'const y = { x: { z: { k: a, v: 0 } } }; for (let i = 0; i < 3; i++) y.x.z.k += i; o[0] ' +
      '= y.x.z.k',
    'const y = { x: { k: a, v: 0 } }; if (a > b) y.x = { k: 5, v: 6 }; y.x.k += 1; o[0] = y.x.k',
    'const t = { p: s[0] }; s[0].v = 3; o[0] = t.p.k; o[1] = t.p.v',
    'const t = { p: s[0] }; t.p.v = 3; o[0] = t.p.k; o[1] = t.p.v; o[2] = s[0].v',
    'let x = { k: a, v: 1 }; const t = { p: x, q: { r: x } }; x = { k: 5, v: 6 }; o[0] = ' +
      't.p.k; o[1] = t.q.r.v; o[2] = x.k',
    'const x = { k: a, v: 1 }; const t = { p: x, q: { r: x } }; x.k = 12; o[0] = t.p.k; o[1] ' +
      '= t.q.r.k',
    'const t = { p: s[0], n: 1 }; t.n = 2; o[0] = t.p.k + t.n',
    'const t = { p: { ...s[0] }, n: 1 }; t.p.v = 4; t.n = 2; s[0].k = 77; o[0] = t.p.k + ' +
      't.n; o[1] = t.p.v',
    'let t = { p: s[0], n: 1 }; for (let i = 1; i < 4; i++) { if (s[i].k > t.p.k) t = { p: ' +
      's[i], n: i }; } o[0] = t.p.v; o[1] = t.n',
    'const swap = { x: s[0], y: s[1] }; s[0] = swap.y; s[1] = swap.x',
    'let x = 0, y = 1; for (let i = 0; i < 10; i++) ({ x, y } = { x: y, y: x + y }); o[0] = ' +
      'x; o[1] = y',
    'let x = 1, y = 2; ({ x, y } = { x: y, y: x }); o[0] = x; o[1] = y',
    'let k = 1, v = 0; ({ k, v } = s[k]); o[0] = k; o[1] = v',
    'let x = { k: a, v: 0 }, y = { k: b, v: 1 }; ({ x, y } = { x: y, y: x }); o[0] = x.k; ' +
      'o[1] = y.k',
    'let p = { q: { k: 1, v: 2 }, r: { k: 3, v: 4 } }; p = { q: p.r, r: p.q }; o[0] = p.q.k; ' +
      'o[1] = p.r.k',
    'const x = { k: a, v: 0 }; const y = { x }; y.x.k = 77; o[0] = x.k; o[1] = y.x.k',
    'const p = { q: { k: 1, v: 2 }, r: { k: 3, v: 4 } }; const c = { ...p }; c.q.k = 8; o[0] ' +
      '= p.q.k; o[1] = c.r.v',
    'const p = { q: { k: 1, v: 2 }, n: 3 }; const c = { ...p, n: 4 }; p.q.k = 8; o[0] = ' +
      'c.q.k; o[1] = c.n; o[2] = p.n',
    'const p = { q: s[0] }; p.q.v = 9; o[0] = s[0].v',
    'const q = s[1]; q.v += a; s[0].k = b; s[2] = q',
    's[1] = s[2]; const e = s[0]; e.v = 9; o[0] = e.v; o[1] = s[0].v',
    'for (let i = 0; i < 4; i++) { const e = s[i]; e.v += i; o[i] = e.v; }',
    'const list = { first: s[0], rest: { first: s[1], rest: { first: s[2] } } }; s[2] = ' +
      's[0]; s[0] = { k: 1, v: 1 }; o[0] = list.first.k; o[1] = list.rest.rest.first.k',
  ])('%s', (body) => {
    const expected = inJavaScript(body);
    expect(compiled(body)).toEqual(expected);
  });
});

describe('refused, since registers cannot follow it', () => {
  test.each([
    [
      'const p = { k: 1, v: 1 }, q = { k: 2, v: 2 }; const c = a > b ? p : q; c.v = 99; o[0] = p.v',
      'c',
    ],
    ['let node = s[0]; for (let i = 0; i < 3; i++) node = s[node.k % 4]; node.v = 7', 'node'],
    ['let x = { k: 1, v: 1 }; const p = x; x = { k: 2, v: 2 }; x.v = 3; o[0] = p.v', 'p'],
    ['const x = { k: a, v: 0 }; let y = x; y = { k: 1, v: 1 }; x.v = 5; o[0] = y.v', 'y'],
    ['const e = s[0]; s[0].v = 3; s[0] = { k: 1, v: 1 }; o[0] = e.v', 'e'],
    ['const t = { p: s[0], n: s[1].v }; s[0] = { k: 100, v: 200 }; s[1].v = 3; o[0] = t.p.k', 'p'],
    ['const t = { p: s[0] }; s[0].v = 3; s[0] = { k: 1, v: 1 }; o[0] = t.p.v', 'p'],
    ['let x = { k: a, v: 1 }; const t = { p: x }; x = { k: 5, v: 6 }; x.k = 4; o[0] = t.p.k', 'p'],
    ['const e = s[0]; s[0] = s[1]; e.k = 9; o[0] = s[0].k; o[1] = e.k', 'e'],
    ['const e = s[0]; e.k = 9; s[0] = s[1]; o[0] = e.k', 'e'],
    [
      'for (let i = 0; i < 2; i++) { const e = s[i]; if (i === 1) e.k = 7; s[i] = s[i + 1]; ' +
        'o[i] = e.k; }',
      'e',
    ],
    ['const x = { k: 1, v: 2 }; let p = { q: x, n: 5 }; p.n = 6; x.k = 9; o[0] = p.q.k', 'p.q'],
    [
      'let x = { k: 1, v: 2 }; let p = { q: x, r: x }; p = { q: x, r: x }; p.q.k = 5; o[0] = ' +
        'p.r.k; o[1] = x.k',
      'p.q',
    ],
    ['let p = { q: s[0], n: 5 }; p = { q: s[1], n: 6 }; s[1].k = 7; o[0] = p.q.k', 'p.q'],
    ['const t = { p: s[0], n: 1 }; t.n = 2; t.p.v = 3; o[0] = s[0].v', 't.p'],
    ['const t = { p: s[0], n: 1 }; t.n = 2; s[0].v = 3; o[0] = t.p.v', 't.p'],
    [
      'const x = { k: a, v: 1 }; let t = { p: x, n: 1 }; t = { p: x, n: 2 }; x.v = 3; o[0] = t.p.v',
      't.p',
    ],
    ['const p = gpu.larger(s[0], s[1]); p.v = 3', 'p'],
    ['const x = { k: 1, v: 1 }, y = { k: 2, v: 1 }; gpu.set(gpu.larger(x, y), 3); o[0] = y.v', 'p'],
    ['const x = { k: 1, v: 1 }, y = { k: 2, v: 1 }; gpu.set(a > b ? x : y, 3); o[0] = y.v', 'p'],
  ])('%s', (body, name) => {
    expect(() => compiled(body)).toThrow(
      `\`${name}\` would be another name of a structure whose fields are written later`,
    );
    expect(() => compiled(body)).toThrow('{ ...s }');
  });

  test.each([
    's[1].k = (s[1] = { k: 10, v: 11 }).v; o[0] = s[1].k',
    's[1].k += (s[1] = { k: 10, v: 11 }).v; o[0] = s[1].k',
    'const c = gpu.cadd(s[0], (s[0] = s[1], s[2])); o[0] = c.k',
  ])('an element that is used after another has replaced it: %s', (body) => {
    expect(() => compiled(body)).toThrow(
      'Another structure replaces this element before it is used',
    );
  });

  test('an element is read before a barrier after which other threads write it', () => {
    const body =
      'const t = gpu.threadIdx.x; for (let i = 0; i < 3; i++) { s[t] = { k: i, v: t }; ' +
      'gpu.block.sync(); const e = s[(t + 1) % 4]; gpu.block.sync(); o[t] = e.v * 10 + e.k; }';
    const {
      of,
      emitted: { ptx },
    } = runKernel(readKernel(source(body)), {
      values: { s: new Int32Array(8), o: new Int32Array(8), a: 0, b: 0 },
      block: [4, 1, 1],
      shown: false,
    });
    expect([...of<Int32Array>('o')].slice(0, 4)).toEqual([12, 22, 32, 2]);
    expect(ptx.slice(ptx.lastIndexOf('bar.sync'))).not.toContain('ld.global');
  });

  test('a parameter stays as it is, and a copy of it does not', () => {
    const by = (text: string) =>
      readKernel({
        name: 'k',
        indexType: 'i32',
        text,
        uses: {},
        signature: {
          p: { kind: 'struct', struct },
          o: { kind: 'tensor', element: { storage: 'i32' }, access: 'output', rank: 1 },
        },
      });
    expect(() => by('({ p, o }) => { const q = p; q.k += 1; o[0] = q.k; }')).toThrow(
      'let s = { ...p }',
    );
    by('({ p, o }) => { const q = { ...p }; q.k += 1; o[0] = q.k; }');
  });
});
