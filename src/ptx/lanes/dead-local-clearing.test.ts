import { describe, expect, it } from 'vitest';
import { Code } from '../wasm/code.js';
import { ModuleBuilder } from '../wasm/module.js';
import { withDeadCleared } from './dead-local-clearing.js';

const [LEFT, SEEN, VECTOR] = [0, 1, 2];

/**
 * Units of which every second one reaches general code, where it adds 1 to the old value of the
 * vector: the result is the sum of those values.
 */
function units(): { code: Uint8Array; unit: number; general: number } {
  const code = new Code();
  code.op('loop').byte(0x40);
  const unit = code.length;
  code.get(LEFT).i32(1).op('i32.and').op('if').byte(0x40);
  const general = code.length;
  code.get(VECTOR).v128([1, 1, 1, 1]).op('i32x4.add').set(VECTOR);
  code.get(SEEN).get(VECTOR).lane('i32x4.extract_lane', 2).op('i32.add').set(SEEN).op('end');
  code.get(LEFT).i32(1).op('i32.sub').tee(LEFT).op('br_if').u32(0).op('end').get(SEEN).op('end');
  return { code: code.finish(), unit, general };
}

function run(code: Uint8Array, left: number): number {
  const module = new ModuleBuilder();
  module.define(
    module.reserve('f', { params: ['i32'], results: ['i32'] }, 'f'),
    ['i32', 'v128'],
    code,
  );
  const { f } = new WebAssembly.Instance(
    new WebAssembly.Module(module.finish() as Uint8Array<ArrayBuffer>),
  ).exports as { f: (left: number) => number };
  return f(left);
}

/** Bytes of a vector constant and of the instruction that sets a local. */
const CLEARED = 20;

describe('what a unit leaves', () => {
  const { code, unit, general } = units();
  const places = {
    units: [unit],
    general: [general],
    ofInstructions: [VECTOR],
    most: 1,
    localCount: 3,
    isVector: (local: number) => local === VECTOR,
  };

  it('is visible to the next one as long as nothing is cleared', () => {
    expect(run(code, 8)).toBe(1 + 2 + 3 + 4);
  });

  it.each([
    ['where general code begins', {}, general],
    ["where a unit begins, of what is no instruction's", { ofInstructions: [] }, unit],
    ['where a unit begins, without general code', { general: [] }, unit],
  ])('is cleared %s', (_, other, at) => {
    const next = withDeadCleared(code, { ...places, ...other });
    expect(run(next, 8)).toBe(4);
    expect(next.length).toBe(code.length + CLEARED);
    expect([...next.subarray(0, at)]).toEqual([...code.subarray(0, at)]);
    expect([...next.subarray(at + CLEARED)]).toEqual([...code.subarray(at)]);
  });

  it('remains if clearing would cost a unit too much', () => {
    expect(withDeadCleared(code, { ...places, ofInstructions: [], most: 0 })).toEqual(code);
    expect(run(withDeadCleared(code, { ...places, most: 0 }), 8)).toBe(4);
  });
});
