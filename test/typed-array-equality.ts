/**
 * `toEqual` of typed arrays that have the same bytes, at once: vitest compares them element by
 * element, which takes a quarter of a second for 300,000 of them. vitest.config.ts names this file
 * as a setup file. Where bytes differ, vitest compares, and shows the difference.
 */
import { expect } from 'vitest';

type TypedArray = Exclude<ArrayBufferView, DataView>;

function isTypedArray(value: unknown): value is TypedArray {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

function sameBytes(a: unknown, b: unknown): boolean | undefined {
  if (!isTypedArray(a) || !isTypedArray(b) || a.byteLength !== b.byteLength) return undefined;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return undefined;
  const [x, y] = [a, b].map((each) =>
    Buffer.from(each.buffer as ArrayBuffer, each.byteOffset, each.byteLength),
  ) as [Buffer, Buffer];
  return x.equals(y) ? true : undefined;
}

// A shared process runs the setup files again for each test file.
const added = Symbol.for('async-cuda.test.typed-array-equality');
const registry = globalThis as { [added]?: true };
if (registry[added] === undefined) {
  registry[added] = true;
  expect.addEqualityTesters([sameBytes]);
}
