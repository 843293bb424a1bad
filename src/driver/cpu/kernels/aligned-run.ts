/**
 * Calls a kernel's function so that its vectors are aligned on the stack.
 *
 * V8 spills vectors to the stack, at multiples of 16 bytes from the frame, and guarantees only that
 * the frame is at a multiple of 8 (on x64). Where it is 8 off, every fourth vector lies in two
 * cache lines, and one of a page in two pages: mandelbrot then took 51 to 87 ms instead of 39. The
 * frame's position depends on those of the callers, and changes when V8 compiles one of them anew.
 * Code cannot read its own position. So there are two entries, whose frames differ by 8 bytes, and
 * from time to time a function of known work, most of it on vectors on the stack, is run by both
 * and timed. (Timing the kernel itself is less precise: its blocks differ, and two of them do not
 * compare two entries.) The kernel's exported function calls that probe from the place where it
 * calls the kernel's own function: the exported function has a frame, too, of a size that each
 * version of V8 chooses.
 */
import type { RunBlock } from './run-block.js';

/** Calls before the entries are first compared: a kernel that runs less often does not profit. */
const FIRST = 32;
/**
 * Milliseconds between two comparisons, which take 10 µs, and calls between two readings of the
 * clock.
 */
const APART_MS = 10;
const CALLS = 4;
/**
 * Calls of each entry in a comparison, of which the fastest counts, and rounds of the loop in each:
 * 1 µs.
 */
const PROBES = 4;
const ROUNDS = 100;
/**
 * The ratio below which an entry replaces the current one. Where frames differ, it is 0.8 or less
 * (measured).
 */
const BETTER = 0.93;
/** Vectors of the probe: x64 has 16 registers for them, and the others are spilled to the stack. */
const VECTORS = 24;

/**
 * Calls the exported function with `address` and `fuel`; where `address` is 0, `fuel` is the
 * probe's rounds. `zero` is 0.
 */
export type Way = (address: number, fuel: number, zero: 0) => number;

// The code is encoded here, since members of the crew load this file: the compiler's table of
// instructions would add 3 ms to their threads' start (measured).
const I32 = 0x7f;
const I64 = 0x7e;
const V128 = 0x7b;
const HEAD = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

function leb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)];
}

const sized = (bytes: readonly number[]): number[] => [...leb(bytes.length), ...bytes];
const section = (id: number, items: readonly (readonly number[])[]): number[] => [
  id,
  ...sized([...leb(items.length), ...items.flat()]),
];
const named = (name: string): number[] => sized([...new TextEncoder().encode(name)]);
const get = (local: number): number[] => [0x20, local];
const set = (local: number): number[] => [0x21, local];

// (module (import "" "run" (func $run (param i32 i32) (result i32)))
//   (func (export "plain") (param i32 i32 i32) (result i32)
//     (call $run (local.get 0) (local.get 1)))
//   (func (export "shifted") (param i32 i32 i32) (result i32) (local i64)
//     (local.set 3 (i64.extend_i32_s (local.get 2)))
//     (i32.or (call $run (local.get 0) (local.get 1)) (i32.wrap_i64 (local.get 3)))))
// The last argument is 0, unknown to the compiler, so the value made of it is kept during the call.
function waysCode(): Uint8Array<ArrayBuffer> {
  const enter = [...get(0), ...get(1), 0x10, 0];
  return Uint8Array.from([
    ...HEAD,
    ...section(1, [
      [0x60, 2, I32, I32, 1, I32],
      [0x60, 3, I32, I32, I32, 1, I32],
    ]),
    ...section(2, [[0, ...named('run'), 0, 0]]),
    ...section(3, [[1], [1]]),
    ...section(7, [
      [...named('plain'), 0, 1],
      [...named('shifted'), 0, 2],
    ]),
    ...section(10, [
      sized([0, ...enter, 0x0b]),
      sized([1, 1, I64, ...get(2), 0xac, ...set(3), ...enter, ...get(3), 0xa7, 0x72, 0x0b]),
    ]),
  ]);
}

// (func (export "probe") (param $rounds i32) (result i32) (local $v0 … v128) each $v =
// i32x4.splat($rounds) (loop each $v = i32x4.add($v, the fifth after it); (br_if 0 (local.tee
// $rounds (i32.sub (local.get $rounds) (i32.const 1))))) one lane of what all of them make
// together) A module of its own: what lies in a kernel's could be put into the function that calls
// it, and make its frame what it is not.
function probeCode(): Uint8Array<ArrayBuffer> {
  const vectors = Array.from({ length: VECTORS }, (_, i) => 1 + i);
  return Uint8Array.from([
    ...HEAD,
    ...section(1, [[0x60, 1, I32, 1, I32]]),
    ...section(3, [[0]]),
    ...section(7, [[...named('probe'), 0, 0]]),
    ...section(10, [
      sized([
        1,
        VECTORS,
        V128,
        ...vectors.flatMap((vector) => [...get(0), 0xfd, 0x11, ...set(vector)]),
        0x03,
        0x40,
        ...vectors.flatMap((vector, i) => [
          ...get(vector),
          ...get(vectors[(i + 5) % VECTORS]!),
          0xfd,
          0xae,
          0x01,
          ...set(vector),
        ]),
        ...get(0),
        0x41,
        1,
        0x6b,
        0x22,
        0,
        0x0d,
        0,
        0x0b,
        ...vectors.flatMap((vector, i) => (i === 0 ? get(vector) : [...get(vector), 0xfd, 0x51])),
        0xfd,
        0x1b,
        0,
        0x0b,
      ]),
    ]),
  ]);
}

let probe: WebAssembly.ExportValue | undefined;
let ways: WebAssembly.Module | undefined;

/** Returns the function that modules in lanes import as `env.probe`. */
export function vectorProbe(): WebAssembly.ExportValue {
  return (probe ??= new WebAssembly.Instance(new WebAssembly.Module(probeCode())).exports[
    'probe'
  ]!);
}

function waysInto(run: RunBlock): readonly [Way, Way] {
  ways ??= new WebAssembly.Module(waysCode());
  const { plain, shifted } = new WebAssembly.Instance(ways, { '': { run } }).exports as {
    plain: Way;
    shifted: Way;
  };
  return [plain, shifted];
}

/**
 * Returns a function with the effect of `run`, the exported function of a module in lanes.
 * @param enter for tests
 */
export function alignedRun(run: RunBlock, now: () => number, enter = waysInto): RunBlock {
  let both: readonly [Way, Way] | undefined;
  let chosen = 0;
  let left = FIRST;
  let last = -Infinity;
  const least = [0, 0];

  function decide(): void {
    const [plain, shifted] = least as [number, number];
    if (shifted < BETTER * plain) chosen = 1;
    else if (plain < BETTER * shifted) chosen = 0;
  }

  return (address, fuel) => {
    let probes = 0;
    if (--left < 0) {
      left = CALLS - 1;
      const time = now();
      if (time - last >= APART_MS) {
        last = time;
        both ??= enter(run);
        least[0] = least[1] = Infinity;
        probes = 2 * PROBES;
      }
    }
    if (both === undefined) return run(address, fuel);
    // One place calls both the probe and the kernel: from another place of this function, the calls
    // might have other frames.
    for (; ; probes--) {
      const way = probes > 0 ? probes & 1 : chosen;
      const start = probes > 0 ? now() : 0;
      const status = both[way]!(probes > 0 ? 0 : address, probes > 0 ? ROUNDS : fuel, 0);
      if (probes === 0) return status;
      least[way] = Math.min(least[way]!, now() - start);
      if (probes === 1) decide();
    }
  };
}
