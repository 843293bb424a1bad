// Every form that only computes, in both back ends: operands that are uniform, step from one thread
// to the next, differ by a literal or freely, in all threads or in those for which a predicate
// holds.

import { describe, expect, it } from 'vitest';
import { PtxError, STATUS, compilePtx } from '../index.js';
import { casesOf } from '../rules/form-cases.test-support.js';
import { ARITHMETIC } from '../isa/arithmetic.js';
import { BITS as BIT_ROWS } from '../isa/bits.js';
import { COMPARISON } from '../isa/comparison.js';
import { CONVERSION } from '../isa/conversion.js';
import { FORMS_OF } from '../isa/table.js';
import { VIDEO } from '../isa/video.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import { sequence } from './sequence.test-support.js';
import { scaled } from '../../../test/random-runs.js';

const MNEMONICS = [ARITHMETIC, BIT_ROWS, COMPARISON, CONVERSION, VIDEO]
  .flatMap((rows) => Object.keys(rows))
  .filter((name) => !['isspacep', 'cvta', 'mapa', 'getctarank', 'copy'].includes(name));
/** Instructions in one kernel. */
const CHUNK = 12;
/** The most cases of a mnemonic: of more, every second, third or so is tested. */
const MOST = scaled(240);
const THREADS = 40;

const WORDS = [
  0, 1, 2, 31, 32, 33, 63, 64, 255, 0x7f, 0x80, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000,
  0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x80000001,
  0x007fffff, 0x00800000, 0x3c003c00, 0x7c00fc00, 0x04000001, 0x00018001, 0x7e007c01, 0x4b000000,
  0x4f000000, 0xcf000000, 0x7f7fffff, 0x3f80bf80,
];
const BITS: Record<string, number> = { h: 16, r: 32, f: 32, l: 64, d: 64, q: 128, e: 8, p: 1 };

/** The kind of a register as far as NaN is concerned: the machine chooses its payload. */
const kindOf = (name: string, instruction: string): string =>
  name.startsWith('%l') && /f32x2/.test(instruction)
    ? 'f32x2'
    : name.startsWith('%r') && /tf32/.test(instruction)
      ? 'f'
      : name[1]!;
const isNaN32 = (word: number): boolean => (word & 0x7fffffff) > 0x7f800000;
/** Whether two cells hold the same bits, or both a NaN. */
function same(kind: string, one: Uint32Array, other: Uint32Array): boolean {
  const isNaN64 = (cell: Uint32Array): boolean =>
    Number.isNaN(new Float64Array(cell.slice(0, 2).buffer)[0]);
  if (kind === 'd' && isNaN64(one) && isNaN64(other)) return true;
  return one.every(
    (word, index) =>
      word === other[index] ||
      ((kind === 'f' || kind === 'f32x2') && isNaN32(word) && isNaN32(other[index]!)),
  );
}

/** The instruction with literals in place of some registers that it reads, if it takes them. */
function withLiterals(instruction: string, next: () => number): string {
  let first = true;
  const changed = instruction.replace(
    /(?<=[ ,])%([hrlfd])\d+(?=[,;])/g,
    (register, kind: string) => {
      if (first || next() % 3) {
        first = false;
        return register;
      }
      const value = next() % 2 ? WORDS[next() % WORDS.length]! : (next() % 40) - 8;
      const bits = (value >>> 0).toString(16).padStart(8, '0');
      if (kind === 'f') return `0f${bits}`;
      if (kind === 'd') return `0d${bits}${next().toString(16).padStart(8, '0')}`;
      return String(kind === 'h' ? value & 0xffff : value);
    },
  );
  if (changed === instruction) return instruction;
  try {
    compilePtx(kernelOf([changed], 1).source);
    return changed;
  } catch (error) {
    if (!(error instanceof PtxError)) throw error;
    return instruction;
  }
}

/**
 * A kernel that gives every register of each instruction a value, executes it, and stores all of
 * them.
 */
function kernelOf(
  instructions: readonly string[],
  seed: number,
): { source: string; kinds: string[] } {
  const next = sequence(seed);
  const kinds: string[] = [];
  let at = 0;
  const text = instructions.map((instruction, index) => {
    const names = [...new Set(instruction.match(/%[a-z]\d+/g))];
    const lines: string[] = [];
    for (const name of names) {
      const kind = next() % 6;
      const from = kind === 0 ? '%in' : '%mine';
      const offset = 8 * (at++ % 64);
      const bits = BITS[name[1]!]!;
      if (bits === 1)
        lines.push(
          kind === 1
            ? `setp.lt.u32 ${name}, %t, 17;`
            : `ld.global.u32 %x, [${from}+${offset}]; setp.gt.s32 ${name}, %x, 31;`,
        );
      else if (bits === 8) lines.push(`ld.global.b8 ${name}, [${from}+${offset}];`);
      else if (bits === 128) lines.push(`ld.global.b128 ${name}, [${from}+${offset & ~15}];`);
      else if (kind === 1 && bits === 32)
        lines.push(
          `mad.lo.u32 %x, %t, ${next() % 7}, ${WORDS[next() % WORDS.length]!}; mov.b32 ` +
            `${name}, %x;`,
        );
      else if (kind === 2 && bits === 32)
        lines.push(`xor.b32 %x, %t, ${next() % 64}; mov.b32 ${name}, %x;`);
      else if (kind === 1 && bits === 64)
        lines.push(`mad.wide.s32 %y, %t, ${(next() % 9) - 4}, %z; mov.b64 ${name}, %y;`);
      else lines.push(`ld.global.b${bits} ${name}, [${from}+${offset}];`);
    }
    const guard = next() % 4;
    if (guard === 0) lines.push(`@%gp ${instruction}`);
    else if (guard === 1) lines.push(`@!%gp bra after${index};`, instruction, `after${index}:`);
    else lines.push(instruction);
    for (const name of names) {
      const cell = `[%to+${16 * kinds.length}]`;
      kinds.push(kindOf(name, instruction));
      const bits = BITS[name[1]!]!;
      lines.push(
        bits === 1
          ? `selp.u32 %x, 1, 0, ${name}; st.global.u32 ${cell}, %x;`
          : `st.global.b${bits} ${cell}, ${name};`,
      );
    }
    return lines.join('\n');
  });
  const source = `.version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param
    .u64 in, .param .u64 out) {
    .reg .pred %p<4>, %gp; .reg .b16 %h<24>; .reg .b32 %r<24>, %x, %t; .reg .f32 %f<24>;
    .reg .b64 %l<24>, %in, %mine, %to, %y, %z; .reg .f64 %d<24>; .reg .b128 %q<4>; .reg .b8 %e<4>;
    ld.param.u64 %in, [in]; ld.param.u64 %to, [out]; mov.u32 %t, %tid.x;
    mad.wide.u32 %mine, %t, 512, %in; mad.wide.u32 %to, %t, ${16 * kinds.length}, %to;
      ld.global.u32 %x, [%mine]; setp.lt.u32 %gp, %x, 1000; mov.b64 %z, 0x7ffffff0;
    ${text.join('\n')}
    ret; }\n`;
  return { source, kinds };
}

function differs(instructions: readonly string[], seed: number): string | undefined {
  const { source, kinds } = kernelOf(instructions, seed);
  const next = sequence(seed + 1);
  const values = Uint32Array.from({ length: 128 * (THREADS + 1) }, () =>
    next() % 3 ? WORDS[next() % WORDS.length]! : next(),
  );
  const cells = kinds.length * THREADS;
  const [one, lanes] = [false, true].map((simd) => {
    const grid = new Grid(source, { simd, relaxedFma: true });
    const input = grid.put(values);
    const out = grid.put(new Uint32Array(4 * cells));
    const launch = { grid: [1], block: [THREADS] } as const;
    expect(grid.run('k', [{ i64: input.address }, { i64: out.address }], launch).status).toBe(
      STATUS.done,
    );
    const found = grid.kernel('k').inLanes([THREADS, 1, 1]);
    // A single instruction without a vector form, among loads and stores that have one, may be most
    // of its kernel.
    if (simd && typeof found === 'string' && instructions.length === CHUNK)
      expect(found).toMatch(/carry chains|128-bit registers/);
    return out.view;
  }) as [Uint32Array, Uint32Array];
  for (let cell = 0; cell < cells; cell++) {
    const [a, b] = [one.subarray(4 * cell, 4 * cell + 4), lanes.subarray(4 * cell, 4 * cell + 4)];
    if (!same(kinds[cell % kinds.length]!, a, b))
      return (
        `thread ${Math.floor(cell / kinds.length)}, cell ${cell % kinds.length}: ` +
        `${[...b].map((word) => word.toString(16)).join(' ')} in lanes, ` +
        `${[...a].map((word) => word.toString(16)).join(' ')} ` +
        `alone\n${instructions.length > 1 ? '' : source}`
      );
  }
  return undefined;
}

describe('forms in lanes', () => {
  for (const mnemonic of MNEMONICS) {
    it(`${mnemonic} gives what it gives thread by thread`, { tags: 'random' }, () => {
      const all = FORMS_OF.get(mnemonic)!
        .filter((row) => !row.sinceText.includes('before'))
        .flatMap(casesOf);
      const cases = all.filter((_, index) => index % Math.ceil(all.length / MOST) === 0);
      for (let from = 0; from < cases.length; from += CHUNK) {
        const seed = Math.imul(from + 1, 7919) + mnemonic.length;
        const next = sequence(seed + 2);
        const chunk = cases
          .slice(from, from + CHUNK)
          .map(({ text }) => (next() % 2 ? withLiterals(text, next) : text));
        if (differs(chunk, seed) === undefined) continue;
        // Finds the one that differs.
        for (const text of chunk)
          for (let again = 0; again < 20; again++)
            expect(differs([text], seed + again), text).toBeUndefined();
        expect(differs(chunk, seed), chunk.join('\n')).toBeUndefined();
      }
    });
  }

  it.each([
    'isspacep.global %p, %at; selp.b32 %y, 1, %x, %p;',
    'prmt.b32.f4e %y, %x, %t, 2;',
    'prmt.b32.rc8 %z, %t, %t, %t; add.u32 %y, %x, %z;',
    'shf.l.wrap.b32 %y, %x, %t, 3;',
  ])('take words that are no types: %s', (body) => {
    const source = kernelText(
      'k',
      '.param .u64 out',
      `
    .reg .b64 %out, %at; .reg .b32 %t, %x, %y, %z; .reg .pred %p;
    ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %at, %t, 4, %out;
    ld.global.u32 %x, [%at]; ${body} st.global.u32 [%at], %y; ret;`,
    );
    const [scalar, lanes] = [false, true].map((simd) => {
      const grid = new Grid(source, { simd, pages: 16 });
      const out = grid.put(Uint32Array.from({ length: 256 }, (_, at) => Math.imul(at, 0x01020304)));
      const launch = { grid: [1], block: [256] } as const;
      expect(grid.repeat('k', [{ i64: out.address }], launch)).toBe(STATUS.done);
      return { width: grid.width('k', launch), values: [...out.view] };
    });
    expect(lanes!.width).toBeGreaterThan(1);
    expect(lanes!.values).toEqual(scalar!.values);
  });
});
