/** Sums and extremes over a warp and a block, written in the kernel language in the order that gpu.ts states. */
import { arity, number, type Call } from './calls.js';
import { callText } from './device-functions.js';
import { commonType } from './operators.js';
import { inType, typed, type Value } from './values.js';

type Reduction = 'sum' | 'max' | 'min';

const combined: Readonly<Record<Reduction, (a: string, b: string) => string>> = {
  sum: (a, b) => `${a} + ${b}`,
  max: (a, b) => `Math.max(${a}, ${b})`,
  min: (a, b) => `Math.min(${a}, ${b})`,
};

const distances = [16, 8, 4, 2, 1];

function warpText(of: Reduction): string {
  const turns = distances.map((distance) => `v = ${combined[of]('v', `gpu.warp.shuffleXor(v, ${distance})`)};`);
  return `(value, gpu) => { let v = value; ${turns.join(' ')} return v; }`;
}

/**
 * Warps by butterfly, then their results in order. The last warp may have fewer than 32 lanes: a lane without a partner
 * keeps its value, which leaves lane 0 with the warp's whole result. The first barrier keeps this call's writes from the
 * reads of the one before. The largest is joined with the thread's own again, which changes nothing, but shows the compiler that no
 * element of the thread is above it.
 */
function blockText(of: Reduction, type: string): string {
  const turns = distances.map((distance) => `{ const o = gpu.warp.shuffleXor(v, ${distance}, mask); if ((gpu.lane ^ ${distance}) < lanes) v = ${combined[of]('v', 'o')}; }`);
  return `(value, gpu) => {
  const threads = gpu.blockDim.x * gpu.blockDim.y * gpu.blockDim.z;
  const lanes = Math.min(32, threads - gpu.warpIdx * 32);
  const mask = gpu.u32(0xffffffff) >>> (32 - lanes);
  const parts = gpu.shared.${type}(32);
  let v = value;
  ${turns.join('\n  ')}
  gpu.block.sync();
  if (gpu.lane === 0) parts[gpu.warpIdx] = v;
  gpu.block.sync();
  let all = parts[0];
  for (let w = 1; w * 32 < threads; w++) all = ${combined[of]('all', 'parts[w]')};
  return ${of === 'max' ? combined[of]('all', 'v') : 'all'};
}`;
}

const reduction = (text: (type: string) => string) => (call: Call): Value => {
  arity(call, 1);
  const value = number(call, 0);
  const type = commonType(value);
  return callText(call.pass, call.node, call.name, text(type), [typed(inType(value, type))]);
};

export const warpReduction = (of: Reduction) => reduction(() => warpText(of));
export const blockReduction = (of: Reduction) => reduction((type) => blockText(of, type));
