// Relaxed SIMD allows an engine to fuse relaxed_madd or not. One triple shows which: the low bits
// of a fused product survive.

import { Bytes } from '../wasm/bytes.js';
import { Code } from '../wasm/code.js';
import type { LaneOpcode, Opcode } from '../wasm/opcodes.js';

let fused: boolean | undefined;

/** True if relaxed_madd exists and rounds once, for f32 and f64. */
export function relaxedFmaIsFused(): boolean {
  fused ??= probe();
  return fused;
}

function probe(): boolean {
  // Not every TypeScript library declares the part of WebAssembly that this uses.
  const api = (
    globalThis as unknown as {
      WebAssembly?: {
        validate(bytes: Uint8Array): boolean;
        Module: new (bytes: Uint8Array) => object;
        Instance: new (module: object) => { exports: Record<string, (a: number) => number> };
      };
    }
  ).WebAssembly;
  if (!api) return false;
  const body = (splat: Opcode, madd: Opcode, extract: LaneOpcode): Uint8Array => {
    const code = new Code().u32(0);
    // a*a - 1 for a = 1 + tiny: without fusion, tiny squared is lost.
    const minusProduct = (): void => {
      code.get(0).op(splat);
    };
    minusProduct();
    minusProduct();
    if (splat.startsWith('f32')) code.get(0).get(0).op('f32.mul').op('f32.neg').op(splat);
    else code.get(0).get(0).op('f64.mul').op('f64.neg').op(splat);
    return code.op(madd).lane(extract, 0).op('end').finish();
  };
  const bodies = [
    body('f32x4.splat', 'f32x4.relaxed_madd', 'f32x4.extract_lane'),
    body('f64x2.splat', 'f64x2.relaxed_madd', 'f64x2.extract_lane'),
  ];
  const out = new Bytes().append(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
  const section = (id: number, content: Bytes): void => {
    out.byte(id).u32(content.length).append(content.finish());
  };
  section(
    1,
    new Bytes().append(new Uint8Array([2, 0x60, 1, 0x7d, 1, 0x7d, 0x60, 1, 0x7c, 1, 0x7c])),
  );
  section(3, new Bytes().append(new Uint8Array([2, 0, 1])));
  section(7, new Bytes().u32(2).name('f').byte(0).u32(0).name('d').byte(0).u32(1));
  const code = new Bytes().u32(2);
  for (const bytes of bodies) code.u32(bytes.length).append(bytes);
  section(10, code);
  const bytes = out.finish();
  if (!api.validate(bytes)) return false;
  const { f, d } = new api.Instance(new api.Module(bytes)).exports;
  return f!(1 + 2 ** -23) === 2 ** -46 && d!(1 + 2 ** -52) === 2 ** -104;
}
