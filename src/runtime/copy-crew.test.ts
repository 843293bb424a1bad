/**
 * Copies by several cores: every byte arrives, no byte beside it changes, and a crew without
 * threads of its own does the same.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import * as fc from '../../test/fast-check.js';
import { afterAll, describe, expect, test } from 'vitest';

import { koffiPath, loadKoffi } from '../native/koffi.js';
import { CopyCrew } from './copy-crew.js';
import { scaled } from '../../test/random-runs.js';

const SIZE = 3 << 20;

/** Bytes that differ from place to place and from copy to copy. */
function pattern(bytes: Uint8Array, seed: number): Uint8Array {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + (i >>> 8) * 17 + seed) & 0xff;
  return bytes;
}

describe.each([
  ['with helpers', true],
  ['alone', false],
] as const)('a crew %s', (_, helped) => {
  const crew = CopyCrew.open(koffiPath(), 4);
  if (crew === undefined) {
    test.skip('no libc is available', () => undefined);
    return;
  }
  const koffi = loadKoffi(koffiPath());
  const native = new Uint8Array(new SharedArrayBuffer(SIZE));
  const address = Number(koffi.address(native));
  if (helped) crew.start(SIZE);
  afterAll(() => crew.close());

  test('copies any part, and nothing else', { tags: 'random' }, async () => {
    // The crew's threads have then started for most of it.
    if (helped) await sleep(300);
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: SIZE }),
        fc.integer({ min: 0, max: SIZE }),
        fc.integer({ min: 0, max: 255 }),
        fc.boolean(),
        (a, b, seed, out) => {
          const [from, to] = a < b ? [a, b] : [b, a];
          const user = new Uint8Array(SIZE);
          const [source, target] = out ? [native, user] : [user, native];
          pattern(source, seed);
          target.fill(seed ^ 0xff);
          if (out) crew.copyOut(target.subarray(from, to), address + from);
          else crew.copyIn(address + from, source.subarray(from, to));
          expect(
            Buffer.compare(
              Buffer.from(target.subarray(from, to)),
              Buffer.from(source.subarray(from, to)),
            ),
          ).toBe(0);
          expect(target.subarray(0, from).every((byte) => byte === (seed ^ 0xff))).toBe(true);
          expect(target.subarray(to).every((byte) => byte === (seed ^ 0xff))).toBe(true);
        },
      ),
      { numRuns: 25 },
    );
  });

  test('copies again after a pause', { tags: 'scaled' }, async () => {
    const user = pattern(new Uint8Array(SIZE), 7);
    for (let i = 0; i < scaled(200); i++) {
      if (i % scaled(50) === 0) await sleep(5);
      user[i * 4096] = i;
      crew.copyIn(address, user);
      expect(native[i * 4096]).toBe(i & 0xff);
      expect(Buffer.compare(Buffer.from(native), Buffer.from(user))).toBe(0);
    }
  });
});

/** koffi ends the process where a thread is terminated that is loading a library. */
describe.skipIf(CopyCrew.open(koffiPath(), 4) === undefined)(
  'A crew whose helpers are loading',
  () => {
    test('is closed at any time', { tags: 'thorough' }, async () => {
      for (let i = 0; i < 25; i++) {
        const crew = CopyCrew.open(koffiPath(), 5)!;
        crew.start(SIZE);
        await sleep(i * 4);
        await crew.close();
      }
    });
  },
);
