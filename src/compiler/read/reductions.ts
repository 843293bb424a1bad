/**
 * Sums, maxima and minima over a warp and a block, written in the kernel language in the order that
 * gpu.ts states.
 */
import { arity, number, type Call } from './calls.js';
import { inType, typed, type Value } from './values.js';
import { commonType } from './operands.js';
import { callText } from './reading.js';

type Reduction = 'sum' | 'max' | 'min';

const combined: Readonly<Record<Reduction, (a: string, b: string) => string>> = {
  sum: (a, b) => `${a} + ${b}`,
  max: (a, b) => `Math.max(${a}, ${b})`,
  min: (a, b) => `Math.min(${a}, ${b})`,
};

const distances = [16, 8, 4, 2, 1];

const THREADS = 'const threads = gpu.blockDim.x * gpu.blockDim.y * gpu.blockDim.z;';
/** The number of this warp's lanes, and a mask of them. */
const LANES =
  'const lanes = Math.min(32, threads - gpu.warpIdx * 32); const mask = gpu.u32(0xffffffff) ' +
  '>>> (32 - lanes);';

/**
 * The reduction of a warp. The last warp of a block may have fewer than 32 lanes: lanes without a
 * partner keep their value, and lane 0 has the whole result.
 */
function warpText(of: Reduction): string {
  const turns = distances.map(
    (distance) => `v = ${combined[of]('v', `gpu.warp.shuffleXor(v, ${distance})`)};`,
  );
  return `(value, gpu) => {
  ${THREADS}
  let v = value;
  if (threads % 32 === 0) { ${turns.join(' ')} } else {
    ${LANES}
    ${guardedTurns(of)}
    v = gpu.warp.shuffle(v, 0, mask);
  }
  return v;
}`;
}

/** The steps for `lanes` lanes, which `mask` names. */
function guardedTurns(of: Reduction): string {
  return distances
    .map(
      (distance) =>
        `{ const o = gpu.warp.shuffleXor(v, ${distance}, mask); if ((gpu.lane ^ ${distance}) ` +
        `< lanes) v = ${combined[of]('v', 'o')}; }`,
    )
    .join('\n  ');
}

/** Neutral elements, for lanes without a value. */
const nothing: Readonly<Record<Reduction, Readonly<Record<string, string>>>> = {
  sum: { i32: '0', u32: '0', i64: '0', u64: '0', f32: '-0', f64: '-0' },
  max: {
    i32: '-2147483648',
    u32: '0',
    i64: '-9223372036854775808n',
    u64: '0',
    f32: '-Infinity',
    f64: '-Infinity',
  },
  min: {
    i32: '2147483647',
    u32: '4294967295',
    i64: '9223372036854775807n',
    u64: '18446744073709551615n',
    f32: 'Infinity',
    f64: 'Infinity',
  },
};

/**
 * The reduction of a block: a butterfly within each warp, then another one over the warps' results,
 * which each warp computes for itself where all warps are whole. Where the last one has fewer than
 * 32 lanes, a lane without a partner keeps its value, which leaves lane 0 with the warp's whole
 * result, and the first warp joins the results for all. `again`: the block has another reduction,
 * or this one repeats, and the first barrier orders its writes after the earlier reads. The maximum
 * is joined with the thread's own again, which changes nothing, but shows the compiler that no
 * element of the thread is above it.
 */
function blockText(of: Reduction, type: string, again: boolean): string {
  const join = combined[of];
  // The steps between the results that exist, as many as there are warps.
  const joined = distances
    .map(
      (distance) =>
        `if (warps > ${distance}) all = ${join('all', `gpu.warp.shuffleXor(all, ${distance})`)};`,
    )
    .join(' ');
  return `(value, gpu) => {
  ${THREADS}
  ${LANES}
  const warps = (threads + 31) >> 5;
  const parts = gpu.shared.${type}(33);
  let v = value;
  ${guardedTurns(of)}
  ${again ? 'gpu.block.sync();' : ''}
  if (gpu.lane === 0) parts[gpu.warpIdx] = v;
  gpu.block.sync();
  let all = v;
  if (threads % 32 === 0) {
    if ((warps & (warps - 1)) === 0) {
      all = parts[gpu.lane & (warps - 1)];
      ${joined}
    } else {
      all = ${nothing[of][type]};
      if (gpu.lane < warps) all = parts[gpu.lane];
      ${joined}
      all = gpu.warp.shuffle(all, 0);
    }
  } else {
    if (gpu.warpIdx === 0 && warps > 1) {
      all = ${nothing[of][type]};
      if (gpu.lane < warps) all = parts[gpu.lane];
      ${joined}
      if (gpu.lane === 0) parts[32] = all;
    }
    gpu.block.sync();
    all = parts[warps > 1 ? 32 : 0];
  }
  return ${of === 'max' ? join('all', 'v') : 'all'};
}`;
}

const reduction =
  (text: (type: string, again: boolean) => string) =>
  (call: Call): Value => {
    arity(call, 1);
    const value = number(call, 0);
    const type = commonType(value);
    return callText(
      call.pass,
      call.node,
      call.name,
      text(type, call.pass.mayRepeat(`${call.name} ${type}`)),
      [typed(inType(value, type))],
    );
  };

export const warpReduction = (of: Reduction) => reduction(() => warpText(of));
export const blockReduction = (of: Reduction) =>
  reduction((type, again) => blockText(of, type, again));
