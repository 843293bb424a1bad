// Random kernels: threads that diverge and reconverge, adjacent and scattered accesses, warp
// operations, barriers; and their results in either back end.

import * as fc from '../../../test/fast-check.js';
import type { PtxCompileOptions } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import type { Dimensions, Outcome } from '../run-grid.test-support.js';
import {
  D,
  F,
  FUNCTIONS,
  PERMUTATIONS,
  R,
  integer,
  meeting,
  one,
  pattern,
  steps,
  streaming,
  text,
} from './random-instructions.test-support.js';
import type { Node } from './random-instructions.test-support.js';

export { F, R, floating, integer } from './random-instructions.test-support.js';

/** Some leave groups of four incomplete. */
export const SHAPES: readonly Dimensions[] = [
  [32],
  [33],
  [7],
  [1],
  [4, 3],
  [8, 4],
  [16, 2, 2],
  [5, 5],
  [64],
  [100],
  [12, 1, 3],
  [2, 16],
  [16, 3],
  [32, 2],
  [8, 3, 2],
];
const { body } = fc.letrec<{ body: Node[]; divergent: Node }>((tie) => ({
  body: fc.array(tie('divergent'), { minLength: 1, maxLength: 5, depthIdentifier: 'nesting' }),
  divergent: fc.oneof(
    { depthSize: 'small', depthIdentifier: 'nesting', maxDepth: 4 },
    one,
    one,
    one,
    one,
    fc.record({
      kind: fc.constant('if' as const),
      condition: fc.oneof(
        fc.constantFrom('%q0', '!%q0', '%q1', '!%q1', '%first', '!%third'),
        steps,
      ),
      then: tie('body'),
      otherwise: fc.oneof(fc.constant<Node[]>([]), tie('body')),
    }),
    // A grid-stride loop: threads side by side through memory, for more rounds than a turn has.
    fc.record({
      kind: fc.constant('stride' as const),
      from: fc.constantFrom('%t', '%t', '%t8'),
      by: fc.constantFrom(4, 7, 32, 50, 64),
      bound: fc.constantFrom('7', '100', '333', '960', '%last', '%r4', '%r1'),
      comparison: fc.constantFrom('lt.s32', 'lt.u32', 'le.s32', 'lo.u32'),
      body: fc.array(fc.oneof(one, streaming), { maxLength: 3 }),
    }),
    fc.record({
      kind: fc.constant('loop' as const),
      count: fc.nat(R - 1),
      bound: fc.constantFrom(1, 3, 7),
      body: tie('body'),
    }),
  ),
}));
export const program = fc.record({
  parts: fc.array(fc.tuple(body, fc.option(meeting, { nil: undefined })), {
    minLength: 1,
    maxLength: 4,
  }),
  exits: fc.boolean(),
  repeats: fc.boolean(),
});

const pieces = pattern.map((line): Node => ({ kind: 'text', text: line }));
export const differing = fc.record({
  parts: fc.array(
    fc.tuple(
      fc.array(
        fc.oneof(
          { weight: 5, arbitrary: pieces },
          { weight: 1, arbitrary: text(integer) },
          {
            weight: 1,
            arbitrary: fc.record({
              kind: fc.constant('if' as const),
              condition: fc.constantFrom('%q0', '!%q1'),
              then: fc.array(pieces, { maxLength: 3 }),
              otherwise: fc.array(pieces, { maxLength: 2 }),
            }),
          },
        ),
        { minLength: 1, maxLength: 6 },
      ),
      fc.option(meeting, { nil: undefined }),
    ),
    { minLength: 1, maxLength: 3 },
  ),
  exits: fc.boolean(),
  repeats: fc.boolean(),
});

/** The text of a kernel that runs the program and stores every register. */
export function kernel({
  parts,
  exits,
  repeats,
}: {
  parts: [Node[], Node | undefined][];
  exits: boolean;
  repeats: boolean;
}): string {
  let labels = 0;
  let loops = 0;
  let patterns = 0;
  const emit = (nodes: readonly Node[]): string =>
    nodes
      .map((node) => {
        switch (node.kind) {
          case 'text':
            return node.text.replaceAll('AROUND', `A${labels++}`).replaceAll('#', `${patterns++}`);
          case 'if': {
            const [no, end] = [labels++, labels++];
            const stepping = node.condition.startsWith('setp');
            const condition = stepping
              ? `!%g${no}`
              : node.condition.startsWith('!')
                ? node.condition.slice(1)
                : `!${node.condition}`;
            return (
              `${stepping ? node.condition.replace('#', `${no}`) : ''} @${condition} bra ` +
              `L${no};\n${emit(node.then)}\nbra ` +
              `L${end};\nL${no}:\n${emit(node.otherwise)}\nL${end}:`
            );
          }
          case 'stride': {
            const [head, counter] = [labels++, loops++];
            const text = emit(node.body).replaceAll('%step', `%n${counter}`);
            return (
              `mov.u32 %n${counter}, ${node.from};\nL${head}:\n${text}\nadd.s32 %n${counter}, ` +
              `%n${counter}, ${node.by}; min.s32 %stop, ${node.bound}, 960; max.s32 %stop, ` +
              `%stop, 0; setp.${node.comparison} %g${head}, %n${counter}, %stop;\n@%g${head} ` +
              `bra L${head};`
            );
          }
          case 'loop': {
            const [head, counter] = [labels++, loops++];
            return (
              `and.b32 %n${counter}, %r${node.count}, ` +
              `${node.bound};\nL${head}:\n${emit(node.body)}\nsub.s32 %n${counter}, ` +
              `%n${counter}, 1;\nsetp.ge.s32 %m, %n${counter}, 0;\n@%m bra L${head};`
            );
          }
        }
      })
      .join('\n');
  const middle = emit(parts.flatMap(([nodes, meet]) => (meet ? [...nodes, meet] : nodes)));
  return kernelText(
    'k',
    '.param .u64 in, .param .u64 out',
    `
    ${Array.from(
      { length: patterns },
      (_, index) =>
        `.reg .b32 %u0_${index}, %u1_${index},
      %u2_${index}, %u3_${index}, ` +
        `${['', 'b', 'c', 'e'].map((part) => `%u4_${index}${part}`).join(', ')}; .reg .pred ` +
        `%v_${index}, %w_${index};`,
    ).join(' ')}
    .reg .b32 %row<5>, %perm, %r<${R}>, %t, %x, %y, %cell, %base, %all, %last,
      %n<${loops + 1}>; .reg .b16 %h<4>; .local .align 16 .b8 kept[64];
        .reg .f32 %f<${F}>, %g; .reg .b64 %d<${D}>, %in, %out, %a, %mine, %mine1, %mine2,
          %mine8, %mine16, %mineOut, %mineOut2, %mineOut16, %log, %sum, %o;
    .reg .b32 %z, %stop, %tx, %lane, %lane3, %high, %eighths;
    .reg .pred %first, %third, %all8; .reg .pred %q0, %q1, %m, %g<${labels + 1}>;
      .reg .b32 %t8, %down; .shared .align 16 .b8 cells[512];
      .shared .align 16 .b8 permuted[${8192 * PERMUTATIONS.length}];
    ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
    mov.u32 %t, %tid.z; mov.u32 %x, %ntid.y; mov.u32 %y, %tid.y; mad.lo.u32 %t, %t, %x, %y;
    mov.u32 %x, %ntid.x; mov.u32 %y, %tid.x; mad.lo.u32 %t, %t, %x, %y;
    mad.wide.u32 %mine, %t, 4, %in; mad.wide.u32 %mine8, %t, 8, %in;
    mad.wide.u32 %log, %t, 4, %out; add.s64 %sum, %out, 65536;
    mov.u32 %tx, %tid.x; and.b32 %lane, %tx, 31; and.b32 %lane3, %tx, 3;
    shr.u32 %eighths, %tx, 2; and.b32 %high, %eighths, 0x1ffffff8;
    setp.lt.u32 %first, %lane, 1; setp.eq.s32 %third, %lane3, 2; setp.lt.s32 %all8, %lane, 8;
    add.s32 %t8, %t, -8; sub.s32 %down, 20, %t; mov.u32 %all, -1; mov.u32 %last, 31;
    cvt.u64.u32 %mine1, %t; mul.wide.u32 %mine2, %t, 2; mul.wide.u32 %mine16, %t, 16;
    add.s64 %mineOut, %out, 32768; add.s64 %mineOut2, %mineOut, %mine2;
    add.s64 %mineOut16, %mineOut, %mine16; add.s64 %mineOut, %mineOut, %mine1;
    add.s64 %mine1, %in, %mine1; add.s64 %mine2, %in, %mine2; add.s64 %mine16, %in, %mine16;
    ${[0, 16, 32, 48]
      .map(
        (at) => `st.local.v4.u32 [kept+${at}], {%t, ${at}, %all,
      %last};`,
      )
      .join(' ')}
    mov.u32 %row0, %tid.z; mov.u32 %row1, %ntid.y; mov.u32 %row2, %tid.y;
    mad.lo.u32 %row3, %row0, %row1, %row2; mov.u32 %row4, permuted;
    mad.lo.u32 %perm, %row3, 512, %row4; mov.u32 %base, cells; and.b32 %x, %t, 127;
    mad.lo.u32 %cell, %x, 4, %base; st.shared.u32 [%cell], %t; bar.sync 0;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mul.lo.u32 %r2, %t, 2654435761;
    ld.global.u32 %r3, [%mine]; mov.u32 %r4, 5; mov.u32 %r5, %t;
    cvt.rn.f32.u32 %f0, %t; ld.global.f32 %f1, [%mine+512]; mov.f32 %f2, 0f3FC00000;
    mov.f32 %f3, 0f00000000; mov.u64 %d0, 77; cvt.u64.u32 %d1, %t;
    setp.lt.u32 %q0, %r0, 3; setp.gt.u32 %q1, %r2, 0x70000000;
    ${exits ? 'setp.gt.u32 %m, %t, 29; @%m exit;' : ''}
    ${repeats ? 'mov.u32 %n' + loops + ', 2;\nR:' : ''}
    ${middle}
    ${repeats ? `sub.u32 %n${loops}, %n${loops}, 1; setp.ne.u32 %m, %n${loops}, 0; @%m bra R;` : ''}
    mad.wide.u32 %o, %t, 64, %out; add.s64 %o, %o, 16384;
    ${Array.from(
      { length: R },
      (_, index) => `st.global.u32 [%o+${4 * index}],
      %r${index};`,
    ).join(' ')}
    ${Array.from(
      { length: F },
      (_, index) =>
        `setp.nan.f32 %m, %f${index}, %f${index}; selp.f32 %g, 0f7FFFFFFF, %f${index}, %m; ` +
        `st.global.f32 [%o+${24 + 4 * index}], %g;`,
    ).join(' ')}
    st.global.u64 [%o+40], %d0; st.global.u64 [%o+48], %d1; selp.u32 %x, 1, 0, %q0;
    selp.u32 %y, 2, 0, %q1; add.u32 %x, %x, %y; st.global.u32 [%o+56], %x;
    mad.lo.u32 %x, %lane, 256, %lane3; xor.b32 %x, %x, %high; st.global.u32 [%o+60], %x; ret;`,
    FUNCTIONS,
  );
}

export const input = Uint32Array.from(
  { length: 1024 },
  (_, index) =>
    [index, 0x3f800000 + (index << 12), 0xc0000000 - (index << 8), Math.imul(index, 0x9e3779b9)][
      index & 3
    ]! >>> 0,
);

export function run(
  source: string,
  block: Dimensions,
  options: PtxCompileOptions,
  fuel = 1 << 22,
): { out: Uint32Array; status: number; lanes: number; fault: Outcome['fault'] } {
  const grid = new Grid(source, { ...options, pages: 64 });
  const from = grid.put(input);
  const out = grid.put(new Uint32Array(32768));
  const { status, fault } = grid.run('k', [{ i64: from.address }, { i64: out.address }], {
    grid: [2],
    block,
    fuel,
    maxCalls: fuel < 1000 ? 100_000 : 100,
  });
  return { out: out.view, status, fault, lanes: grid.width('k', { grid: [2], block }) };
}

export const differences = (a: Uint32Array, b: Uint32Array): number[] => {
  const found: number[] = [];
  for (let index = 0; index < a.length && found.length < 8; index++)
    if (a[index] !== b[index]) found.push(index);
  return found;
};
