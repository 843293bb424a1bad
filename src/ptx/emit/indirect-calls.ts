// Functions that call through an address: one for each signature.

import { FUNCTION_TAG } from '../analysis/data-layout.js';
import { FAULT } from '../context.js';
import type { WasmType } from '../scalar-types.js';
import type { PtxFunction } from '../syntax/ast.js';
import { Code } from '../wasm/code.js';
import type { Signature } from '../wasm/signature.js';
import { callSignature, sameSignature } from './calling.js';
import type { Linker } from './linker.js';

export class IndirectCalls {
  private readonly known: { signature: Signature; index: number }[] = [];

  /** The index of the function (…arguments, address, line) → results. */
  index(signature: Signature, linker: Linker): number {
    const known = this.known.find((call) => sameSignature(call.signature, signature));
    if (known) return known.index;
    const index = linker.module.reserve(`indirect_${this.known.length}`, {
      params: [...signature.params, 'i64', 'i32'],
      results: signature.results,
    });
    this.known.push({ signature, index });
    return index;
  }

  /**
   * Writes all of them, after the last request.
   *
   * @param taken the functions whose address is taken, in the order of their addresses
   * @param indices the indices of the functions in the module
   */
  define(
    linker: Linker,
    taken: readonly PtxFunction[],
    indices: ReadonlyMap<PtxFunction, number>,
  ): void {
    for (const { signature, index } of this.known)
      linker.define(index, [], indirectCallCode(signature, taken, indices, linker));
  }
}

/**
 * Finds the function with an address and calls it; an address of no function with this signature is
 * a fault.
 */
function indirectCallCode(
  signature: Signature,
  taken: readonly PtxFunction[],
  indices: ReadonlyMap<PtxFunction, number>,
  linker: Linker,
): Uint8Array {
  const { module } = linker;
  const code = new Code({
    local: (index) => [...signature.params, 'i64', 'i32'][index] as WasmType | undefined,
    global: (index) => module.globalType(index),
    function: (index) => module.signature(index),
    results: () => signature.results,
  });
  const address = signature.params.length;
  taken.forEach((target, position) => {
    const index = indices.get(target);
    if (index === undefined || !sameSignature(callSignature(target), signature)) return;
    code
      .get(address)
      .i64(FUNCTION_TAG + BigInt(position) * 16n)
      .op('i64.eq')
      .op('if')
      .byte(0x40);
    signature.params.forEach((_, param) => code.get(param));
    code.op('call').u32(index).op('return').op('end');
  });
  code
    .get(0)
    .i32(FAULT.invalidCall)
    .get(1)
    .get(address + 1)
    .get(address)
    .op('call')
    .u32(linker.functionIndex('fault'));
  for (const type of signature.results) {
    if (type === 'i64') code.i64(0);
    else code.i32(0);
  }
  return code.op('end').finish();
}
