/**
 * Instructions of the device that a body names directly: those of Hopper's warp groups, tensor
 * copies, mbarriers, clusters and dependent grids. They have no other meaning for the compiler than
 * their operands, and are executed in their order. A row gives what the stages need to know; how an
 * instruction is read is in `read/instructions.ts`, its PTX in `emit/instruction-texts.ts`.
 */

interface InstructionRow {
  /** The first compute capability that has it, as major * 10 + minor. */
  readonly capability: number;
  /** Whether only PTX for exactly that architecture has it: sm_90a. */
  readonly specific: boolean;
  /** How many threads execute it together. */
  readonly threads: 'one' | 'warp' | 'warp group' | 'cluster';
  /** Whether lines of its arrays in shared memory are swizzled. */
  readonly swizzles?: true;
  /** Whether it has no effect where grids run one after the other, as in a simulation. */
  readonly betweenGrids?: true;
  /** Whether only kernels of the compiler and of the library name it, and gpu's types do not. */
  readonly internal?: true;
}

const HOPPER = { capability: 90, specific: false, threads: 'one' } as const;
const GROUP = { capability: 90, specific: true, threads: 'warp group' } as const;

export const INSTRUCTIONS = {
  'group.begin': GROUP,
  'group.mma': { ...GROUP, swizzles: true },
  'group.commit': GROUP,
  'group.wait': GROUP,
  'group.moreRegisters': GROUP,
  'group.fewerRegisters': GROUP,
  'tensor.load': { ...HOPPER, swizzles: true },
  'tensor.multicast': { ...HOPPER, swizzles: true },
  /** A copy of pixels of images. */
  'tensor.loadPixels': { ...HOPPER, swizzles: true, internal: true },
  'tensor.store': { ...HOPPER, swizzles: true },
  'tensor.add': { ...HOPPER, swizzles: true },
  'tensor.commit': HOPPER,
  'tensor.wait': HOPPER,
  'tensor.waitRead': HOPPER,
  'barrier.init': { ...HOPPER, capability: 80 },
  'barrier.arrive': { ...HOPPER, capability: 80 },
  'barrier.arriveIn': HOPPER,
  'barrier.expect': HOPPER,
  'barrier.wait': HOPPER,
  'cluster.load': HOPPER,
  'cluster.sync': { ...HOPPER, threads: 'cluster' },
  'block.syncThreads': { capability: 50, specific: false, threads: 'warp' },
  /** A product whose fragments are words. */
  'warp.mmaWords': { capability: 80, specific: false, threads: 'warp', internal: true },
  'warp.storeMatrices': { ...HOPPER, threads: 'warp' },
  'grid.waitForDependencies': { ...HOPPER, betweenGrids: true },
  'grid.launchDependents': { ...HOPPER, betweenGrids: true },
  'fence.async': HOPPER,
  'fence.barriers': HOPPER,
} as const satisfies Readonly<Record<string, InstructionRow>>;

export type InstructionName = keyof typeof INSTRUCTIONS;

export const instructionRow = (name: InstructionName): InstructionRow => INSTRUCTIONS[name];
