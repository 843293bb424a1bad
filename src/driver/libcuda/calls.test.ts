import { describe, expect, it, test } from 'vitest';

import { MissingSymbolError } from '../error.js';
import { CALLS } from './calls.js';
import type { CallName } from './calls.js';
import { typeAndName } from './call-row.js';
import type { Argument, Prototype } from './call-row.js';
import { bindCalls, versionText } from './driver-call.js';
import type { DriverCall } from './driver-call.js';
import { loadKoffi } from '../../native/koffi.js';
import { HEADER_FACTS } from './stand-in/header-facts.js';
import { STAND_IN_SOURCE, StandIn, buildStandIn, whyNoStandIn } from './stand-in/stand-in.js';

const ROWS = Object.entries(CALLS) as [CallName, Prototype][];

/** The C types of the table that are allowed for a class of the header's arguments. */
const CLASS_TYPES: Readonly<Record<string, readonly string[]>> = {
  p: ['uintptr_t', 'void*', 'const char*'],
  I: ['uintptr_t', 'int*'],
  U: ['uintptr_t', 'uint32_t*'],
  Q: ['uintptr_t', 'uint64_t*'],
  Z: ['uintptr_t', 'size_t*'],
  P: ['uintptr_t', 'uintptr_t*'],
  F: ['uintptr_t', 'float*'],
  z: ['size_t'],
  u: ['uint32_t'],
  i: ['int'],
  q: ['uint64_t'],
  h: ['uint16_t'],
  b: ['uint8_t'],
  L: ['uint64_t'],
};

/** What NVIDIA's header says of a function. */
function factsOf(symbol: string): readonly [version: number, args: string] {
  const facts = HEADER_FACTS[symbol];
  if (facts === undefined)
    throw new Error(
      `stand-in/header-facts.ts has no ${symbol}: look for the name in cuda.h, where #define may ` +
        'rename it (_v2). node scripts/cuda-header-facts.mjs writes the facts again.',
    );
  return facts;
}

describe('the table of calls', () => {
  it.each(ROWS)('%s has the arguments of the header', (_, row) => {
    const types = row.args.map((arg) => typeAndName(arg)[0]);
    for (const symbol of row.symbols) {
      const classes = [...factsOf(symbol)[1]];
      expect(types).toHaveLength(classes.length);
      types.forEach((type, i) =>
        expect(CLASS_TYPES[classes[i]!], `${symbol}, argument ${i}`).toContain(type),
      );
    }
  });

  it.each(ROWS)('%s names the version of its oldest symbol, newest symbol first', (_, row) => {
    const versions = row.symbols.map((symbol) => factsOf(symbol)[0]);
    expect(row.since).toBe(versionText(versions.at(-1)!));
    expect(versions).toEqual([...versions].sort((a, b) => b - a));
  });
});

/** A value for an argument that no other argument has, in the range of its type. */
function sample(arg: Argument, index: number): unknown {
  switch (typeAndName(arg)[0]) {
    case 'void*':
    case 'const char*':
      return null;
    case 'uint8_t':
      return 0xf0 + index;
    case 'uint16_t':
      return 0xfff0 + index;
    case 'uint32_t':
      return 0xfffffff0 + index;
    case 'int':
      return 0x7ffffff0 + index;
    default:
      // 0x0010 0000 0000 1000: the upper half is lost if any step is 32 bits wide. It is not read
      // as a pointer.
      return 0x10000000001000 + index;
  }
}

describe('calls through the foreign function layer', () => {
  if (whyNoStandIn !== undefined) {
    test.skip(whyNoStandIn, () => {});
    return;
  }
  const bind = (
    version: number,
  ): { standIn: StandIn; calls: Record<CallName, DriverCall<unknown[]>> } => {
    const standIn = new StandIn(buildStandIn(version));
    const calls = bindCalls(loadKoffi().load(standIn.path), () => versionText(version));
    return { standIn, calls: calls as unknown as Record<CallName, DriverCall<unknown[]>> };
  };
  /**
   * The stand-in writes through pointers of these calls or follows them; the provider's tests make
   * them with real memory.
   */
  const followsPointers = new Set(
    [...STAND_IN_SOURCE.matchAll(/strcmp\(name, "(\w+)"\)/g)].map(([, symbol]) => symbol),
  );

  // 13.0 has the newest symbol of every row; 8.0 has older ones of some, and lacks many.
  for (const version of [13000, 11020, 8000]) {
    const { standIn, calls } = bind(version);
    const has = (row: Prototype): string | undefined =>
      row.symbols.find((symbol) => factsOf(symbol)[0] <= version);
    test.each(ROWS.filter(([, row]) => has(row) !== undefined && !followsPointers.has(has(row))))(
      `CUDA ${versionText(version)}: %s reaches its symbol with every argument in its place`,
      (name, row) => {
        const values = row.args.map(sample);
        standIn.reset();
        expect(calls[name].run(...values)).toBe(0);
        const expected = values.map((value) => ((value ?? 0) as number).toString(16));
        expect(standIn.takeLog()).toEqual([[has(row), ...expected].join(' ')]);
      },
    );

    test.each(ROWS.filter(([, row]) => has(row) === undefined))(
      `CUDA ${versionText(version)}: %s is missing, and the error names the driver that has it`,
      (name, row) => {
        const call = calls[name];
        expect(call.available).toBe(false);
        expect(() => call.run(...row.args.map(sample))).toThrow(MissingSymbolError);
        expect(() => call.run(...row.args.map(sample))).toThrow(
          `${row.symbols[0]} needs an NVIDIA driver for CUDA ${row.since} or later; this one ` +
            `supports CUDA ${versionText(version)}.`,
        );
      },
    );
  }

  test('a symbol is looked up when it is first called, once', () => {
    const { calls } = bind(13000);
    const before = calls.cuStreamQuery.run;
    calls.cuStreamQuery.run(5);
    const after = calls.cuStreamQuery.run;
    expect(after).not.toBe(before);
    calls.cuStreamQuery.run(5);
    expect(calls.cuStreamQuery.run).toBe(after);
  });

  test('the rows of one call with two signatures carry the name of the call', () => {
    const { calls } = bind(13000);
    expect(calls.cuMemPrefetchAsync_v1.name).toBe('cuMemPrefetchAsync');
    expect(calls.cuMemPrefetchAsync_v2.name).toBe('cuMemPrefetchAsync');
  });
});
