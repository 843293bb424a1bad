/** Bitonic sort, in global and in shared memory, and a warp's radix ranks. */
import { SPECIAL_I32, Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(13);
const small = Uint32Array.of(...SPECIAL_I32, ...random.words(512 - SPECIAL_I32.length));
const large = random.words(2048).map((word) => word % 700);

const steps: { grid: number; block: number; args: readonly [string, number, number] }[] = [];
for (let k = 2; k <= 512; k *= 2)
  for (let j = k / 2; j >= 1; j /= 2) steps.push({ grid: 8, block: 64, args: ['d', j, k] });

const n = 150;
const keys = random.words(n);
/** Within each warp, threads without a key counted as ones: zeros first, then ones. */
function rank(i: number): number {
  const first = i & ~31;
  const bits = Array.from({ length: 32 }, (_, lane) =>
    first + lane < n ? (keys[first + lane]! >>> 5) & 1 : 1,
  );
  const zeros = bits.filter((bit) => bit === 0).length;
  const before = bits.slice(0, i & 31);
  return bits[i & 31] === 0
    ? before.filter((bit) => bit === 0).length
    : zeros + before.filter((bit) => bit === 1).length;
}

export const K13_BITONIC: SampleModule = {
  name: 'k13_bitonic',
  cases: [
    {
      kernel: 'bitonic_step',
      name: '512 words in 45 launches',
      memory: { d: small },
      launches: steps,
      outputs: { d: { equal: 'bits', reference: () => small.slice().sort() } },
    },
    {
      kernel: 'bitonic_sh',
      name: 'two blocks of 1024 with many equal',
      memory: { d: large },
      launches: [{ grid: 2, block: 1024, args: ['d'] }],
      outputs: {
        d: {
          equal: 'bits',
          reference: () => [...large.slice(0, 1024).sort(), ...large.slice(1024).sort()],
        },
      },
    },
    {
      kernel: 'radix_rank',
      name: '150 keys, the last warp in part',
      memory: { keys, ranks: new Uint32Array(n) },
      launches: [{ grid: 2, block: 96, args: ['keys', 'ranks', 5, n] }],
      outputs: {
        ranks: { equal: 'bits', reference: () => Array.from({ length: n }, (_, i) => rank(i)) },
      },
    },
  ],
};
