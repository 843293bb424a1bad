// The parser accepts the language, its errors have positions, and no text makes it crash or hang.

import { readdirSync } from 'node:fs';
import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { PtxError, STATUS, compilePtx, kernelSignatures, parsePtx } from '../index.js';
import { Grid, kernelText, sample } from '../run-grid.test-support.js';

function failure(text: string, run: (text: string) => unknown = compilePtx): PtxError {
  try {
    run(text);
  } catch (error) {
    if (error instanceof PtxError) return error;
    throw error;
  }
  throw new Error('no error');
}

const kernel = (body: string, params = '.param .u64 p'): string => kernelText('k', params, body);

it('a value that is not a string is reported as such', () => {
  expect(() => compilePtx(null as never)).toThrow(
    new TypeError('source: expected the text of a PTX module, a string, got null.'),
  );
  expect(() => kernelSignatures(new Uint8Array(4) as never)).toThrow(
    'Write new TextDecoder().decode(bytes)',
  );
});

describe('errors point at the place', () => {
  it.each([
    ['add.s32 %r1, %r2', 'syntax', "expected ';' after 'add'"],
    ['.reg .b32 %r<5>; add.s32 %r1, %r2, %r9;', 'semantic', "undefined register '%r9'"],
    ['bra nowhere;', 'semantic', "undefined label 'nowhere'"],
    ['.reg .b32 %r<5>; mov.u32 %r1, nothing;', 'semantic', "undefined symbol 'nothing'"],
    [
      '.reg .b64 %d<2>; .reg .b32 %r<2>; add.s32 %r1, %r0, %d1;',
      'semantic',
      "'%d1' is .b64, the instruction needs .s32",
    ],
    [
      '.reg .f32 %f<2>; .reg .b32 %r<2>; add.s32 %r1, %r0, %f1;',
      'semantic',
      "'%f1' is .f32, the instruction needs .s32",
    ],
    ['.reg .b32 %r<2>; add.s32 %r1, %r0;', 'semantic', "'add' takes 3 operands, found 2"],
    ['.reg .f32 %f<2>; xor.f32 %f1, %f0, %f1;', 'semantic', "'xor' does not take .f32"],
    ['.reg .b64 %d<2>; add.s64 %d1, !%d0, 8;', 'semantic', 'only a predicate can be negated'],
    [
      '.reg .b32 %r<2>; add.wobble.s32 %r1, %r0, 1;',
      'unsupported',
      "'add' takes no modifier '.wobble'",
    ],
    [
      '.reg .b32 %r<2>; add.s23 %r1, %r0, 1;',
      'unsupported',
      "'add' takes no modifier '.s23'; did you mean '.s32'?",
    ],
    [
      '.reg .b64 %d<2>; .reg .b32 %r<2>; ld.globl.u32 %r1, [%d1];',
      'unsupported',
      "'ld' takes no modifier '.globl'; did you mean '.global'?",
    ],
    [
      'tcgen05.wait::ld.sync.aligned;',
      'unsupported',
      "instruction 'tcgen05.wait::ld.sync.aligned' is not covered yet",
    ],
    ['frobnicate.u32 1;', 'semantic', "'frobnicate' is no instruction of PTX"],
    ['mov.u32 %r1, 0f3F;', 'syntax', 'malformed number'],
    ['call missing;', 'semantic', "undefined function 'missing'"],
    ['.reg .quad %q;', 'syntax', "'.quad' is not a type"],
    ['x: x: ret;', 'semantic', "label 'x' is defined twice"],
  ] as const)('%s', (body, code, message) => {
    const error = failure(kernel(`\n  ${body}\n`));
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
    expect(error.line).toBeGreaterThanOrEqual(7);
    expect(error.message).toMatch(new RegExp(`^ptx:${error.line}:${error.column}: error: `));
  });
  it('names line, column, instruction and source line', () => {
    const error = failure(
      kernel(
        '  .reg .b32 %r<3>;\n    tex.2dms.v4.f32.s32 {%r1, %r1, %r1, %r1}, [p, {%r1, %r1, ' +
          '%r1, %r1}];',
      ),
      (text) => compilePtx(text, { fileName: 'a.ptx' }),
    );
    expect(error).toMatchObject({
      code: 'unsupported',
      line: 8,
      column: 5,
      instruction: 'tex.2dms.v4.f32.s32 {%r1, %r1, %r1, %r1}, [p, {%r1, %r1, %r1, %r1}]',
    });
    expect(error.message).toBe(
      "a.ptx:8:5: error: instruction 'tex.2dms.v4.f32.s32': modifier '.2dms' is not covered " +
        'yet\n  tex.2dms.v4.f32.s32 {%r1, %r1, %r1, %r1}, [p, {%r1, %r1, %r1, %r1}];',
    );
  });
  it('a line of a preprocessor that names no file', () => {
    for (const line of ['# 12', '# 12 x', '#', '#pragma once', '# 0x10 "a.cu"'])
      expect(failure(`${kernel('ret;')}\n${line}\n`).message).toContain('unexpected character "#"');
    for (const line of [
      '# 12 "a.cu"',
      '#line 12 "a.cu"',
      '  #3 "a.cu" 1 2',
      '# 1 "a.cu"\n# 2 "b.cu"\r',
    ])
      expect(() => compilePtx(`${kernel('ret;')}\n${line}\n`)).not.toThrow();
  });
  it('an unclosed comment, string or brace', () => {
    expect(failure('/* never').code).toBe('syntax');
    expect(failure('.version 8.0\n.target sm_80\n.file 1 "x').code).toBe('syntax');
    expect(failure('.version 8.0\n.target sm_80\n.entry k() {').message).toContain(
      'end of the text',
    );
    expect(failure('').message).toContain('.version');
  });

  it('and are short for a long text', () => {
    expect(failure('a'.repeat(1_000_000)).message.length).toBeLessThan(2000);
  });
});

describe('syntax', () => {
  it('reads variables with initialisers and addresses', () => {
    const module = compilePtx(`.version 8.0\n.target sm_80\n.address_size 64
      .global .align 4 .b8 bytes[6] = {1, 2, 0xff, -1};
      .visible .const .f32 weights[2][2] = {{0f3F800000, 2.5}, {1.0, 0.0}};
      .global .u64 pointers[3] = {bytes+2, generic(weights), 0};
      .global .v4 .u32 quad = {1, 2, 3, 4};
      .visible .entry k() { ret; }`);
    const byName = new Map(module.variables.map((variable) => [variable.name, variable]));
    expect([
      ...module.data.subarray(byName.get('bytes')!.offset, byName.get('bytes')!.offset + 6),
    ]).toEqual([1, 2, 255, 255, 0, 0]);
    const weights = byName.get('weights')!;
    expect(weights).toMatchObject({ space: 'const', size: 16, visible: true });
    expect([
      ...new Float32Array(module.data.slice(weights.offset, weights.offset + 16).buffer),
    ]).toEqual([1, 2.5, 1, 0]);
    const pointers = byName.get('pointers')!.offset;
    expect(module.relocations).toEqual([
      { offset: pointers, addend: byName.get('bytes')!.offset + 2 },
      { offset: pointers + 8, addend: weights.offset },
    ]);
    expect(byName.get('quad')).toMatchObject({ size: 16, align: 16 });
  });
  it('lays out parameters', () => {
    const text = kernelText(
      'k',
      '.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .u8 c, .param .align 16 ' +
        '.b8 s[20], .param .f64 d',
      'ret;',
    );
    expect(kernelSignatures(text)).toEqual([
      {
        name: 'k',
        paramBytes: 64,
        params: [
          {
            name: 'a',
            type: 'u32',
            size: 4,
            align: 4,
            offset: 0,
            aggregate: false,
            pointer: false,
          },
          { name: 'b', type: 'u64', size: 8, align: 8, offset: 8, aggregate: false, pointer: true },
          {
            name: 'c',
            type: 'u8',
            size: 1,
            align: 1,
            offset: 16,
            aggregate: false,
            pointer: false,
          },
          {
            name: 's',
            type: 'b8',
            size: 20,
            align: 16,
            offset: 32,
            aggregate: true,
            pointer: false,
          },
          {
            name: 'd',
            type: 'f64',
            size: 8,
            align: 8,
            offset: 56,
            aggregate: false,
            pointer: false,
          },
        ],
      },
    ]);
  });
  it('reads launch bounds and shared sizes', () => {
    const [one] =
      compilePtx(`.version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8
      dyn[];
      .visible .entry k() .reqntid 64, 2 .minnctapersm 2 { .shared .align 8 .b8 s[100];
      .reg .b32 %r; mov.u32 %r, s; mov.u32 %r, dyn; ret; }`).kernels;
    expect(one).toMatchObject({
      maxThreads: 128,
      requiredBlock: [64, 2, 1],
      sharedBytes: 112,
      usesDynamicShared: true,
    });
  });
  it('skips debug information and keeps locations', () => {
    const body =
      '  .loc 1 12 5\n .loc 1 3 1, function_name $L__info, inlined_at 1 7 2\n mov.u32 %r, 1; ' +
      '.loc 1 4 1, function_name $L__info+33, inlined_at 1 7 2\n ret;';
    const module = parsePtx(`${kernel(body)}.file 1 "a.cu"\n.section .debug_str { .b8 1,2 }\n`);
    expect(module.functions[0]?.body?.[0]).toEqual({
      kind: 'location',
      file: 1,
      line: 12,
      column: 5,
    });
    // The text after the position is an instruction, not a part of the expression.
    expect(
      module.functions[0]?.body?.map((each) =>
        each.kind === 'instruction' ? each.mnemonic : each.kind,
      ),
    ).toEqual(['location', 'location', 'mov', 'location', 'ret']);
  });
  it('reads elements of vectors by their colours', () => {
    const grid = new Grid(
      kernel(`.reg .b64 %o; .reg .v4 .u32 v; .reg .v2 .u32 w; ld.param.u64 %o, [p];
      mov.u32 v.r, 1; mov.u32 v.y, 2; mov.u32 v.b, 3; mov.u32 v.w, 4; mov.u32 w.x, %ntid.r;
      mov.u32 w.g, %ntid.g;
      st.global.v4.u32 [%o], {v.x, v.g, v.z, v.a}; st.global.v2.u32 [%o+16], {w.r, w.y}; ret;`),
    );
    expect(grid.module.failures).toEqual([]);
    const out = grid.put(new Uint32Array(6));
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [5, 6] }).status).toBe(
      STATUS.done,
    );
    expect([...out.view]).toEqual([1, 2, 3, 4, 5, 6]);
  });
  it('keeps names of inline assembly apart', () => {
    expect(() =>
      compilePtx(
        kernel(
          '.reg .b32 %r<3>; { .reg .b32 t; mov.u32 t, 1; mov.u32 %r1, t; } { .reg .f32 t; ' +
            'mov.f32 t, 0f00000000; } ret;',
        ),
      ),
    ).not.toThrow();
  });
});

describe('any text gives a module or a PtxError', () => {
  const files = readdirSync(new URL('../../../test/ptx/samples/sm_80', import.meta.url))
    .map((name) => name.replace('.ptx', ''))
    .filter((name) => !/k18/.test(name));
  const survives = (text: string): void => {
    try {
      const { wasm } = compilePtx(text);
      if (!WebAssembly.validate(wasm as Uint8Array<ArrayBuffer>)) throw new Error('invalid module');
    } catch (error) {
      if (!(error instanceof PtxError)) throw error;
    }
  };
  it('truncated anywhere', { tags: 'random' }, () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...files),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (name, at) => {
          const text = sample(name);
          survives(text.slice(0, Math.floor(text.length * at)));
        },
      ),
      { numRuns: 60 },
    );
  });
  it('with tokens dropped, doubled and exchanged', { tags: 'random' }, () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...files),
        fc.array(fc.tuple(fc.nat(), fc.nat(), fc.nat(3)), { minLength: 1, maxLength: 4 }),
        (name, edits) => {
          const tokens = sample(name).split(/(?<=[\s,;.[\]{}()<>:])|(?=[,;.[\]{}()<>:])/);
          for (const [from, to, kind] of edits) {
            const [a, b] = [from % tokens.length, to % tokens.length];
            if (kind === 0) tokens.splice(a, 1);
            else if (kind === 1) tokens.splice(a, 0, tokens[b]!);
            else [tokens[a], tokens[b]] = [tokens[b]!, tokens[a]!];
          }
          survives(tokens.join(''));
        },
      ),
      { numRuns: 150 },
    );
  });
  it('with characters replaced', { tags: 'random' }, () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...files),
        fc.array(fc.tuple(fc.nat(), fc.constantFrom(...'{}()[];:,.%@!-+0f9\\"/*\0~?<>x$')), {
          minLength: 1,
          maxLength: 3,
        }),
        (name, edits) => {
          let text = sample(name);
          for (const [from, character] of edits) {
            const at = from % text.length;
            text = text.slice(0, at) + character + text.slice(at + 1);
          }
          survives(text);
        },
      ),
      { numRuns: 150 },
    );
  });
  it('nested without end', () => {
    expect(failure(`.version 8.0\n.target sm_80\n.entry k() ${'{'.repeat(5000)}`).code).toBe(
      'syntax',
    );
    expect(failure(kernel(`.reg .b32 %r; mov.u32 %r, ${'('.repeat(5000)}`)).code).toBe('syntax');
    expect(failure(kernel(`.reg .b32 %r; mov.u32 %r, ${'-'.repeat(5000)}1;`)).code).toBe('syntax');
  });
});
