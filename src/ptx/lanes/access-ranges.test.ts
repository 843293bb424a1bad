// Random kernels whose threads go through memory in even steps, after guards: thread by thread and
// in lanes they give the same results, near the guards' bounds, where numbers wrap around between
// units, and at the end of memory.

import * as fc from '../../../test/fast-check.js';
import { expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const BLOCKS = 2;
const SIZES = [256, 128, 96, 64, 32, 250, 100, 512] as const;
const THREADS = BLOCKS * 512;
const REGION = 65536;
const PAGES = 16;
const TYPES = [
  { name: 'f32', size: 4 },
  { name: 'u32', size: 4 },
  { name: 'u32', size: 4 },
  { name: 'u8', size: 1 },
  { name: 's16', size: 2 },
  { name: 'u64', size: 8 },
  { name: 'f64', size: 8 },
  { name: 'v2.f32', size: 8 },
  { name: 'v4.u32', size: 16 },
] as const;
const ACCESSES = 3;

const accesses = fc.record({
  type: fc.constantFrom(...TYPES),
  stride: fc.constantFrom(1, 1, 1, 1, 2, 3, -1, -2, 0),
  /** How an address is computed from a number of 32 bits. */
  widens: fc.constantFrom(
    'mul.wide.s32',
    'mul.wide.s32',
    'mul.wide.u32',
    'mad.wide.s32',
    'mad.wide.u32',
    'cvt.s64.s32',
    'cvt.u64.u32',
  ),
  offset: fc.constantFrom(0, 0, 1, -1, 5),
  stores: fc.boolean(),
  misaligned: fc.nat(40).map((one) => one === 0),
  /** Bytes from the end of memory at which the last thread's access ends. */
  fromEnd: fc.option(fc.constantFrom(0, 16, -16, 128, -128, 1024, -1024), {
    nil: undefined,
    freq: 6,
  }),
});
const guards = fc.record({
  operation: fc.constantFrom('lt', 'le', 'gt', 'ge', 'lo', 'ls', 'hi', 'hs'),
  isUnsigned: fc.boolean(),
  isLeft: fc.boolean(),
  isLiteral: fc.boolean(),
  leaves: fc.constantFrom('branch', 'branch', 'past', 'exit'),
  negated: fc.boolean(),
  stride: fc.constantFrom(1, 1, 1, 2, -1, 5),
  /** Threads from the first to the one at the bound, before the start of the kernel's numbers. */
  at: fc.constantFrom(0, 1, -1, 32, 31, 64, 255, 256, 300, 512, 511, 1000, 1 << 20, -(1 << 20)),
});
const kernels = fc.record({
  /** The first thread's number, which may wrap around between two units. */
  start: fc
    .tuple(
      fc.constantFrom(0, 0, 0, 2 ** 31, 2 ** 32),
      fc.constantFrom(0, -32, -64, -128, -160, -256, -320, -1024, 32),
    )
    .map(([end, off]) => (end + off) | 0),
  accesses: fc.array(accesses, { minLength: ACCESSES, maxLength: ACCESSES }),
  guards: fc.array(guards, { maxLength: 2 }),
  alike: fc.option(fc.record({ flag: fc.constantFrom(0, 1, 2), negated: fc.boolean() }), {
    nil: undefined,
    freq: 2,
  }),
  /** What the results contain besides loaded values. */
  mixes: fc.array(
    fc.constantFrom('number', 'thread', 'lane', 'block', 'flag', 'loaded', 'even', 'wrapped'),
    { maxLength: 3 },
  ),
  /** How the number is computed from the thread's and the block's. */
  makes: fc.constantFrom('mad', 'mad', 'add', 'shl', 'sub'),
});
type Kernel = typeof kernels extends fc.Arbitrary<infer T> ? T : never;

function text({ start, accesses, guards, alike, mixes, makes }: Kernel, size: number): string {
  const number = {
    mad: 'mad.lo.s32 %g, %c, %n, %t;',
    add: 'mul.lo.u32 %k0, %c, %n; add.s32 %g, %t, %k0;',
    shl: `shl.b32 %k0, %c, 5; mul.lo.s32 %k1, %k0, ${Math.ceil(size / 32)}; add.s32 %g, %k1, %t;`,
    sub: 'mul.lo.s32 %k0, %c, %n; neg.s32 %k1, %k0; sub.s32 %g, %t, %k1;',
  }[makes];
  const bound = ({ stride, at }: Kernel['guards'][number]): number => Math.imul(start + at, stride);
  const tests = guards
    .map((guard, index) => {
      const { operation, isUnsigned, isLeft, isLiteral, leaves, negated, stride } = guard;
      const type = ['lo', 'ls', 'hi', 'hs'].includes(operation) || isUnsigned ? 'u32' : 's32';
      const other = isLiteral
        ? `${type === 'u32' ? bound(guard) >>> 0 : bound(guard)}`
        : `%b${index}`;
      const test =
        `ld.param.u32 %b${index}, [b${index}]; mul.lo.s32 %v${index}, %i, ${stride}; ` +
        `setp.${operation}.${type} %p${index}, ` +
        `${isLeft ? `%v${index}, ${other}` : `${isLiteral ? `%b${index}` : other}, %v${index}`};`;
      const sense = `@${negated ? '!' : ''}%p${index}`;
      return (
        `${test} ` +
        `${
          leaves === 'exit'
            ? `${sense} exit;`
            : leaves === 'branch'
              ? `${sense} bra
          DONE;`
              : `${sense} bra ON${index}; bra DONE;\nON${index}:`
        }`
      );
    })
    .join('\n');
  const uniform =
    alike === undefined
      ? ''
      : `setp.eq.u32 %q, %flag, ${alike.flag}; @${alike.negated ? '!' : ''}%q bra DONE;`;
  const mixed = mixes
    .map(
      (mix) =>
        ({
          number: 'cvt.rn.f32.s32 %y, %i; add.f32 %f0, %f0, %y; add.u32 %r0, %r0, %i;',
          thread: 'add.u32 %r0, %r0, %t;',
          lane: 'mov.u32 %x, %laneid; mad.lo.u32 %r0, %x, 7, %r0;',
          block: 'xor.b32 %r0, %r0, %c;',
          flag: 'add.u32 %r0, %r0, %flag;',
          loaded: 'ld.global.u32 %z, [%results+8]; xor.b32 %r0, %r0, %z;',
          even:
            'and.b32 %x1, %i, 1; setp.eq.u32 %e, %x1, 0; selp.b32 %x2, %r0, %t, %e; add.u32 ' +
            '%r0, %r0, %x2;',
          wrapped: 'mul.lo.u32 %x3, %i, 67108863; shr.u32 %x3, %x3, 3; add.u32 %r0, %r0, %x3;',
        })[mix],
    )
    .join('\n');
  const address = (
    { type: { size: bytes }, stride, widens }: Kernel['accesses'][number],
    index: number,
  ): string => {
    const step = stride * bytes;
    const [name, ...words] = widens.split('.');
    const made =
      name === 'mul'
        ? `${widens} %w${index}, %i, ${step}; add.s64 %a${index}, %at${index}, %w${index};`
        : name === 'mad'
          ? `${widens} %a${index}, %i, ${step}, %at${index};`
          : `mul.lo.s32 %m${index}, %i, ${stride}; cvt.${words.join('.')} %w${index}, ` +
            `%m${index}; shl.b64 %w${index}x, %w${index}, ${Math.log2(bytes)}; add.s64 ` +
            `%a${index}, %w${index}x, %at${index};`;
    return `ld.param.u64 %at${index}, [at${index}]; ${made}`;
  };
  const place = (
    { offset, type: { size: bytes } }: Kernel['accesses'][number],
    index: number,
  ): string => `[%a${index}+${offset * bytes}]`;
  const reads = accesses
    .map((access, index) => {
      if (access.stores && access.stride !== 0) return '';
      const { name } = access.type;
      const where = place(access, index);
      if (name === 'v4.u32')
        return (
          `ld.global.v4.u32 {%l0, %l1, %l2, %l3}, ${where}; mad.lo.u32 %r0, %r0, 3, %l0; ` +
          'xor.b32 %r0, %r0, %l3;'
        ).replaceAll('%l', `%l${index}x`);
      if (name === 'v2.f32')
        return (
          `ld.global.v2.f32 {%h${index}, %j${index}}, ${where}; add.f32 %f0, %f0, %h${index}; ` +
          `fma.rn.f32 %f0, %j${index}, %f0, %h${index};`
        );
      if (name === 'f32')
        return `ld.global.f32 %h${index}, ${where}; fma.rn.f32 %f0, %h${index}, %scale, %f0;`;
      if (name === 'f64')
        return `ld.global.f64 %d${index}, ${where}; add.f64 %d3, %d3, %d${index};`;
      if (name === 'u64')
        return (
          `ld.global.u64 %o${index}, ${where}; cvt.u32.u64 %l${index}, %o${index}; xor.b32 ` +
          `%r0, %r0, %l${index};`
        );
      return `ld.global.${name} %l${index}, ${where}; mad.lo.u32 %r0, %r0, 31, %l${index};`;
    })
    .join('\n');
  const writes = accesses
    .map((access, index) => {
      if (!access.stores || access.stride === 0) return '';
      const { name } = access.type;
      const value =
        name === 'v4.u32'
          ? '{%r0, %t, %r0, %c}'
          : name === 'v2.f32'
            ? '{%f0, %f0}'
            : name === 'f32'
              ? '%f0'
              : name === 'f64'
                ? '%d3'
                : name === 'u64'
                  ? '%o3'
                  : '%r0';
      return `st.global.${name} ${place(access, index)}, ${value};`;
    })
    .join('\n');
  const indices = accesses.map((_, index) => index);
  return kernelText(
    'k',
    [
      '.param .u64 results',
      '.param .u32 flag',
      '.param .f32 scale',
      '.param .u32 start',
      ...indices.map((index) => `.param .u64 at${index}`),
      ...guards.map((_, index) => `.param .u32 b${index}`),
    ].join(', '),
    `
    .reg .b64 %results, %own, ${indices
      .map(
        (index) => `%at${index}, %w${index}, %w${index}x,
      %a${index}, %o${index}`,
      )
      .join(', ')}, %o3; .reg .f64 %d<4>;
        .reg .f32 %f0, %scale, %y, ${indices.map((index) => `%h${index}, %j${index}`).join(', ')};
    .reg .pred %p<2>, %q, %e;
    .reg .b32 %t, %c, %n, %g, %i, %k<2>, %x, %x1, %x2, %x3, %z, %start, %flag, %r0, %b<2>,
    %v<2>, ${indices
      .map(
        (index) => `%m${index}, %l${index}, %l${index}x0, %l${index}x1,
      %l${index}x2, %l${index}x3`,
      )
      .join(', ')};
    ld.param.u64 %results, [results]; ld.param.u32 %flag, [flag];
    ld.param.f32 %scale, [scale]; ld.param.u32 %start, [start];
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; ${number} add.s32 %i, %g, %start;
    ${uniform}\n${tests}
    mov.u32 %r0, 5; mov.f32 %f0, 0f3F800000; mov.f64 %d3, 0d3FF0000000000000;
    ${accesses.map(address).join('\n')}\n${reads}\n${mixed}\ncvt.u64.u32 %o3, %r0;\n${writes}
    mad.wide.s32 %own, %g, 4, %results; st.global.u32 [%own+16], %r0;
    DONE: ret;`,
  );
}

function run(source: string, { start, accesses, guards }: Kernel, size: number, simd: boolean) {
  const grid = new Grid(source, { simd, pages: PAGES });
  const results = grid.put(Uint32Array.from({ length: 2 * THREADS }, (_, at) => at * 77));
  let state = 12345;
  const low = grid.allocate(REGION * (2 * ACCESSES + 1));
  const bytes = new Uint8Array(grid.memory.buffer, low);
  for (let at = 0; at < bytes.length; at++)
    bytes[at] = (state = (Math.imul(state, 1103515245) + 12345) | 0) >>> 24;
  const end = grid.memory.buffer.byteLength;
  const places = accesses.map(
    ({ type: { size: width }, stride, widens, offset, misaligned, fromEnd }, index) => {
      const step = BigInt(stride * width);
      const unsigned = widens.includes('u32');
      const inner = widens.startsWith('cvt');
      const wide = inner
        ? BigInt(unsigned ? Math.imul(start, stride) >>> 0 : Math.imul(start, stride)) *
          BigInt(width)
        : BigInt(unsigned ? start >>> 0 : start) * step;
      const span = stride * width * (BLOCKS * size - 1);
      const first =
        fromEnd === undefined
          ? low + REGION * (2 * index + 1)
          : end - fromEnd - Math.max(span, 0) - width;
      return BigInt.asIntN(
        64,
        BigInt((first & ~15) - offset * width + (misaligned ? 1 : 0)) - wide,
      );
    },
  );
  const args = [
    { i64: results.address + (4 * THREADS) / 2 },
    { i32: 1 },
    { f32: 1.5 },
    { i32: start },
    ...places.map((i64) => ({ i64 })),
    ...guards.map(({ stride, at }) => ({ i32: Math.imul(start + at, stride) })),
  ];
  const launch = { grid: [BLOCKS], block: [size] } as const;
  const status = grid.repeat('k', args, launch);
  return {
    status,
    fault: status === STATUS.fault ? grid.lastFault() : undefined,
    width: grid.width('k', launch),
    memory: [
      [...results.view].join(),
      ...[low, end - REGION].map((at) =>
        Buffer.from(
          new Uint8Array(grid.memory.buffer, at, at === low ? REGION * (2 * ACCESSES + 1) : REGION),
        ).toString('latin1'),
      ),
    ],
  };
}

it(
  'units that go through memory in even steps do what their threads do',
  { tags: 'random' },
  () => {
    const statuses = new Set<number>();
    fc.assert(
      fc.property(kernels, fc.constantFrom(...SIZES), (kernel, size) => {
        // Within a unit a widened number may wrap: its threads' addresses are those of a wider
        // number.
        const isNear = Math.abs(kernel.start) < 2 ** 20;
        fc.pre(size % 32 === 0 || kernel.start === 0);
        // Threads would race.
        fc.pre(kernel.accesses.filter(({ fromEnd }) => fromEnd !== undefined).length < 2);
        fc.pre(
          kernel.accesses.every(
            ({ stride, widens }) => stride >= 0 || (isNear && !widens.includes('u32')),
          ),
        );
        const source = text(kernel, size);
        const scalar = run(source, kernel, size, false);
        const lanes = run(source, kernel, size, true);
        statuses.add(scalar.status);
        expect(lanes.width).toBeGreaterThan(1);
        expect(lanes.status, source).toBe(scalar.status);
        // Of several faults in a unit, lanes reach another one first.
        expect(lanes.fault?.block, source).toBe(scalar.fault?.block);
        if (scalar.status === STATUS.done)
          expect(
            lanes.memory.map((part, at) => part === scalar.memory[at]),
            source,
          ).toEqual([true, true, true]);
      }),
      { numRuns: 600 },
    );
    expect([...statuses].sort()).toEqual([STATUS.done, STATUS.fault].sort());
  },
);
