/** All benchmarks, in the order in which they run. */
import type { Benchmark } from './benchmark.js';
import { compileTimes } from './cpu-device/compile-time.js';
import { cpuCopies } from './cpu-device/copy.js';
import { firstResult } from './cpu-device/first-result.js';
import { cpuKernels } from './cpu-device/kernels.js';
import { cpuLaunchAwait } from './cpu-device/launch-await.js';
import { besideSimulator } from './cpu-device/simulator.js';
import { typescriptCompileTimes } from './cpu-device/typescript-compile-time.js';
import { cpuWorkers } from './cpu-device/workers.js';
import { photographsBenchmarks } from './images/photographs.js';
import { letterboxes } from './images/letterbox.js';
import { imageOperations } from './images/operations.js';
import { imageResizes } from './images/resize.js';
import { classification } from './inference/classification.js';
import { engineMemory } from './inference/engine-memory.js';
import { engineRuns } from './inference/engine-runs.js';
import { serverLoad } from './inference/server-load.js';
import { attentions } from './kernels/attention.js';
import { experts } from './kernels/experts.js';
import { besideNvcc } from './kernels/beside-nvcc.js';
import { matrixProducts } from './kernels/matrix-product.js';
import { sorting } from './kernels/sorting.js';
import { firstLaunch } from './kernels/first-launch.js';
import { chainCosts } from './ops/chain-cost.js';
import { ownershipCosts } from './ops/ownership-cost.js';
import { executionModes } from './ops/modes.js';
import { pipelines } from './ops/pipelines.js';
import { preparedProduct } from './ops/prepared-product.js';
import { products } from './ops/products.js';
import { operationStalls } from './ops/stalls.js';
import { chain } from './runtime/chain.js';
import { copiesPinned } from './runtime/copy-pinned.js';
import { copiesPlain } from './runtime/copy-plain.js';
import { eventLoopStall } from './runtime/event-loop-stall.js';
import { dependentLaunches } from './runtime/dependent-launches.js';
import { graphReplay } from './runtime/graph-replay.js';
import { launchAwaitIdle } from './runtime/launch-await-idle.js';
import { launchAwait } from './runtime/launch-await.js';
import { launchEnqueue } from './runtime/launch-enqueue.js';
import { launchThroughput } from './runtime/launch-throughput.js';
import { launchWhileAllocating } from './runtime/launch-while-allocating.js';
import { launchWhileLoading } from './runtime/launch-while-loading.js';

export const BENCHMARKS: readonly Benchmark[] = [
  ...launchEnqueue,
  launchThroughput,
  launchAwait,
  launchAwaitIdle,
  chain,
  graphReplay,
  dependentLaunches,
  ...copiesPinned,
  ...copiesPlain,
  eventLoopStall,
  launchWhileLoading,
  launchWhileAllocating,
  ...executionModes,
  ...chainCosts,
  ...ownershipCosts,
  pipelines,
  products,
  preparedProduct,
  operationStalls,
  ...besideNvcc,
  ...imageResizes,
  ...classification,
  ...engineRuns,
  engineMemory,
  ...serverLoad,
  ...photographsBenchmarks,
  ...letterboxes,
  ...imageOperations,
  ...matrixProducts,
  ...attentions,
  ...experts,
  sorting,
  firstLaunch,
  ...cpuLaunchAwait,
  firstResult,
  ...cpuCopies,
  ...compileTimes,
  ...typescriptCompileTimes,
  ...cpuKernels,
  ...cpuWorkers,
  ...besideSimulator,
];

const keys = BENCHMARKS.map(({ area, name }) => `${area}: ${name}`);
const repeated = keys.find((key, index) => keys.indexOf(key) < index);
if (repeated !== undefined) throw new Error(`two benchmarks have the name '${repeated}'`);

/** Its peers are machine code. */
const ON_GPUS = 'kernels';

/** The benchmarks whose name or area contains one of `names`; without names, all for the device. */
export function select(names: readonly string[], kind: 'cuda' | 'cpu'): Benchmark[] {
  if (names.length === 0)
    return BENCHMARKS.filter(({ area }) => kind === 'cuda' || area === 'cpu-device');
  const wanted = names.map((name) => name.toLowerCase());
  return BENCHMARKS.filter(
    ({ area, name }) =>
      (kind === 'cuda' || area !== ON_GPUS) &&
      wanted.some((text) => area === text || name.toLowerCase().includes(text)),
  );
}
