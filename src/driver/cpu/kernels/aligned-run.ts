/**
 * A kernel's function, entered so that its vectors lie well on the stack.
 *
 * V8 keeps vectors that find no register on the stack, at multiples of 16 bytes from the frame, and of the frame only that it
 * is a multiple of 8 is certain (on x64). Where it is 8 off, each fourth of them lies in two lines of the cache and one of a
 * page in two pages: mandelbrot took 51 to 87 ms then instead of 39. The frame lies as those of the callers happen to, and
 * moves when the engine compiles one of them anew. No code can ask where its own is. So there are two ways in, whose frames
 * differ by 8 bytes, and now and then the clock is asked which is the better one.
 */
import { STATUS } from '../../../ptx/index.js';
import type { RunBlock } from '../crew/worksite.js';

/** Calls before the ways in are compared first: a kernel that runs less often has nothing from it. */
const FIRST = 64;
/** Pairs of calls that a comparison takes, one of each way, and how many of them must have run blocks to their end. */
const PAIRS = 8;
const ENOUGH = PAIRS / 2;
/** What a way must be better by, to be taken instead: less is the clock's or another program's doing. */
const BETTER = 0.97;
/** Calls between two comparisons, and milliseconds: at least both. Where a comparison found no difference, so many times as much. */
const LEAST_CALLS = 512;
const LEAST_MS = 50;
const ALIKE = 16;

// (module (import "" "run" (func $run (param i32 i32) (result i32)))
//   (func (export "plain") (param i32 i32 i32) (result i32) (call $run (local.get 0) (local.get 1)))
//   (func (export "shifted") (param i32 i32 i32) (result i32) (local i64)
//     (local.set 3 (i64.extend_i32_s (local.get 2)))
//     (i32.or (call $run (local.get 0) (local.get 1)) (i32.wrap_i64 (local.get 3)))))
// The third argument is 0, which no compiler knows: what becomes of it must be kept during the call.
const CODE = Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,
  0x01, 0x0e, 0x02, 0x60, 0x02, 0x7f, 0x7f, 0x01, 0x7f, 0x60, 0x03, 0x7f, 0x7f, 0x7f, 0x01, 0x7f,
  0x02, 0x08, 0x01, 0x00, 0x03, 0x72, 0x75, 0x6e, 0x00, 0x00,
  0x03, 0x03, 0x02, 0x01, 0x01,
  0x07, 0x13, 0x02, 0x05, 0x70, 0x6c, 0x61, 0x69, 0x6e, 0x00, 0x01, 0x07, 0x73, 0x68, 0x69, 0x66, 0x74, 0x65, 0x64, 0x00, 0x02,
  0x0a, 0x1e, 0x02,
  0x08, 0x00, 0x20, 0x00, 0x20, 0x01, 0x10, 0x00, 0x0b,
  0x13, 0x01, 0x01, 0x7e, 0x20, 0x02, 0xac, 0x21, 0x03, 0x20, 0x00, 0x20, 0x01, 0x10, 0x00, 0x20, 0x03, 0xa7, 0x72, 0x0b,
);

type Way = (ctx: number, fuel: number, zero: 0) => number;

let compiled: WebAssembly.Module | undefined;

function waysInto(run: RunBlock): readonly [Way, Way] {
  compiled ??= new WebAssembly.Module(CODE);
  const { plain, shifted } = new WebAssembly.Instance(compiled, { '': { run } }).exports as { plain: Way; shifted: Way };
  return [plain, shifted];
}

/**
 * The same as `run`, an exported function of WebAssembly that works on vectors. `blocks` tells how many blocks a call is to run.
 * @param ways for tests
 */
export function alignedRun(run: RunBlock, blocks: (address: number) => number, now: () => number, ways = waysInto): RunBlock {
  let both: readonly [Way, Way] | undefined;
  let chosen: Way = run;
  let left = FIRST;
  let calls = 0;
  let spent = 0;
  /** Of the pair at hand, by way: milliseconds of a block, 0 where none came to its end. */
  const pair = [0, 0];
  /** What `shifted` took of what `plain` did. */
  const ratios: number[] = [];

  function decide(): void {
    const middle = ratios.sort((a, b) => a - b)[ratios.length >> 1]!;
    const [plain, shifted] = both!;
    const enough = ratios.length >= ENOUGH;
    if (chosen === run) chosen = plain;
    if (enough && middle < BETTER) chosen = shifted;
    else if (enough && middle > 1 / BETTER) chosen = plain;
    const alike = enough && middle >= BETTER && middle <= 1 / BETTER;
    left = Math.max(LEAST_CALLS, Math.round(LEAST_MS * calls / spent)) * (alike ? ALIKE : 1);
    calls = spent = ratios.length = 0;
  }

  /** Which way a pair begins with changes from pair to pair: what comes second may find more in the caches. */
  function compare(address: number, fuel: number): number {
    both ??= ways(run);
    const way = (calls ^ calls >> 1) & 1;
    const count = blocks(address);
    const start = now();
    const status = both[way]!(address, fuel, 0);
    const ms = now() - start;
    spent += ms;
    pair[way] = status === STATUS.done ? ms / count : 0;
    if ((++calls & 1) === 0 && pair[0]! > 0 && pair[1]! > 0) ratios.push(pair[1]! / pair[0]!);
    if (calls === 2 * PAIRS) decide();
    return status;
  }

  return (address, fuel) => {
    if (left <= 0) return compare(address, fuel);
    left--;
    return chosen(address, fuel, 0);
  };
}
