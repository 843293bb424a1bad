// Pushes literals of PTX as constants of the type that an instruction needs.

import type { Arg } from '../analysis/program.js';
import type { ScalarType } from '../scalar-types.js';
import type { Code } from '../wasm/code.js';

export function pushInteger(code: Code, value: bigint, type: ScalarType): void {
  switch (type.wasm) {
    case 'i64':
      code.i64(value);
      return;
    case 'i32': {
      if (type.kind === 'predicate') code.i32(value === 0n ? 0 : 1);
      else if (type.kind === 'signed') code.i32(Number(BigInt.asIntN(type.bits, value)));
      else code.i32(Number(BigInt.asIntN(32, BigInt.asUintN(type.bits, value))));
      return;
    }
    // An integer literal in place of a float is the float's bits in untyped moves, and its value in
    // arithmetic.
    case 'f32':
      code.f32(Number(value));
      return;
    case 'f64':
      code.f64(Number(value));
      return;
  }
}

export function pushFloat(code: Code, arg: Arg & { kind: 'float' }, type: ScalarType): void {
  const number =
    arg.width === 64
      ? new Float64Array(new BigUint64Array([arg.bits]).buffer)[0]!
      : new Float32Array(new Uint32Array([Number(arg.bits)]).buffer)[0]!;
  const single = (): bigint => BigInt(new Uint32Array(new Float32Array([number]).buffer)[0]!);
  if (type.wasm === 'f32') {
    if (arg.width === 32) code.f32Bits(Number(arg.bits));
    else code.f32(number);
  } else if (type.wasm === 'f64') {
    if (arg.width === 64) code.f64Bits(arg.bits);
    else code.f64(number);
  } else if (type.wasm === 'i64') {
    code.i64(arg.width === 64 ? arg.bits : BigInt.asUintN(64, arg.bits));
  } else {
    code.i32(Number(BigInt.asIntN(32, arg.width === 32 ? arg.bits : single())));
  }
}
