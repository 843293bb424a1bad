/**
 * Commands for launches: of kernels in their four forms, of graphs, and calls of libraries, which
 * launch kernels, too.
 *
 * The decoder executes plain launches itself, several at a time (`decoder/launches.ts`); the
 * executions here are those of launches that do not take that path.
 */
import { isPolled } from '../../driver/driver.js';
import type { LaunchAttributes, LaunchConfig } from '../../driver/driver.js';
import { isCapturing } from '../layout.js';
import { command, handlesOf, noOperands, operandsAfter } from './command.js';
import type { Command, Read } from './command.js';
import {
  GRID_PACKED,
  LINE_ACCESS_SHIFT,
  LINE_HANDLE_MASK,
  LINE_PACKED,
} from './line-references.js';
import { ACCESS_SHIFT } from './record.js';
import type { OperationDetails } from './trace.js';

/** The additional words of a launch with attributes. */
export const LAUNCH_EX = {
  flags: 0,
  clusterX: 1,
  clusterY: 2,
  clusterZ: 3,
  priority: 4,
  words: 5,
} as const;
export const LAUNCH_COOPERATIVE = 1;
export const LAUNCH_CLUSTER = 2;
export const LAUNCH_PROGRAMMATIC = 4;
export const LAUNCH_PRIORITY = 8;

/** The words of a launch with all dimensions. */
const GRID = {
  function: 0,
  gridX: 1,
  gridY: 2,
  gridZ: 3,
  blockX: 4,
  blockY: 5,
  blockZ: 6,
  sharedBytes: 7,
} as const;
const LAUNCH_PACKED = 8;
const EX = 8;
const EX_PACKED = EX + LAUNCH_EX.words;

/** Reads references of one word each, which follow the word `packed`. */
function lineOperands(packed: number): Read<number[]> {
  const words = operandsAfter(packed, 1);
  return (memory, body) =>
    words(memory, body).map(
      (word) => (word & LINE_HANDLE_MASK) | (((word >>> LINE_ACCESS_SHIFT) & 7) << ACCESS_SHIFT),
    );
}

/** Describes a launch with all dimensions for a trace. */
function traceGrid(operands: Read<number[]>): Read<OperationDetails> {
  return (memory, body) => ({
    kind: 'launch',
    kernel: memory[body + GRID.function]!,
    grid: [memory[body + GRID.gridX]!, memory[body + GRID.gridY]!, memory[body + GRID.gridZ]!],
    block: [memory[body + GRID.blockX]!, memory[body + GRID.blockY]!, memory[body + GRID.blockZ]!],
    sharedBytes: memory[body + GRID.sharedBytes]!,
    memory: handlesOf(operands(memory, body)),
  });
}

const LINE_OPERANDS = lineOperands(LINE_PACKED);
const GRID_OPERANDS = lineOperands(GRID_PACKED);
const LAUNCH_OPERANDS = operandsAfter(LAUNCH_PACKED, 2);
const EX_OPERANDS = operandsAfter(EX_PACKED, 2);
const LIBRARY_OPERANDS = operandsAfter(1, 2);
const GRAPH_OPERANDS = operandsAfter(1, 1);

export const launches = {
  /**
   * The plain launch, which fits into one cache line. After `packed` come one word for each
   * reference (handle | access << 20 | parameter word << 23), then the parameters.
   */
  launchLine: command({
    op: 1,
    call: 'cuLaunchKernel',
    words: { function: 0, gridX: 1, blockX: 2, sharedBytes: 3, packed: LINE_PACKED },
    length: 5,
    operands: LINE_OPERANDS,
    makes: undefined,
    trace: (memory, body) => ({
      kind: 'launch',
      kernel: memory[body]!,
      grid: [memory[body + 1]!, 1, 1],
      block: [memory[body + 2]!, 1, 1],
      sharedBytes: memory[body + 3]!,
      memory: handlesOf(LINE_OPERANDS(memory, body)),
    }),
    inFlight: 'kernel',
    copies: undefined,
    takesTime: true,
    visit: 'below the limit',
    launches: 1,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, stream) => {
      const params = operands.resolveLine(memory, body + LINE_PACKED);
      driver.cuLaunchKernel(
        shared.values[memory[body]!]!,
        memory[body + 1]!,
        1,
        1,
        memory[body + 2]!,
        1,
        1,
        memory[body + 3]!,
        shared.streams[stream]!,
        memory,
        params,
        memory[body + LINE_PACKED]! >>> 16,
      );
    },
  }),

  /** As `launchLine`, with grid x, y, z and block x, y, z. */
  launchGrid: command({
    op: 35,
    call: 'cuLaunchKernel',
    words: { ...GRID, packed: GRID_PACKED },
    length: 9,
    operands: GRID_OPERANDS,
    makes: undefined,
    trace: traceGrid(GRID_OPERANDS),
    inFlight: 'kernel',
    copies: undefined,
    takesTime: true,
    visit: 'below the limit',
    launches: 1,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, stream) => {
      const params = operands.resolveLine(memory, body + GRID_PACKED);
      driver.cuLaunchKernel(
        shared.values[memory[body]!]!,
        memory[body + 1]!,
        memory[body + 2]!,
        memory[body + 3]!,
        memory[body + 4]!,
        memory[body + 5]!,
        memory[body + 6]!,
        memory[body + 7]!,
        shared.streams[stream]!,
        memory,
        params,
        memory[body + GRID_PACKED]! >>> 16,
      );
    },
  }),

  /**
   * A launch whose references do not fit into one word each. After `packed` come a pair of words
   * for each reference (handle | access, parameter word), then the parameters.
   */
  launch: command({
    op: 26,
    call: 'cuLaunchKernel',
    words: { ...GRID, packed: LAUNCH_PACKED },
    length: 9,
    operands: LAUNCH_OPERANDS,
    makes: undefined,
    trace: traceGrid(LAUNCH_OPERANDS),
    inFlight: 'kernel',
    copies: undefined,
    takesTime: true,
    visit: 'below the limit',
    launches: 1,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, stream) => {
      const packed = memory[body + LAUNCH_PACKED]!;
      const params = operands.resolvePairs(memory, body + LAUNCH_PACKED + 1, packed & 0xffff);
      driver.cuLaunchKernel(
        shared.values[memory[body]!]!,
        memory[body + 1]!,
        memory[body + 2]!,
        memory[body + 3]!,
        memory[body + 4]!,
        memory[body + 5]!,
        memory[body + 6]!,
        memory[body + 7]!,
        shared.streams[stream]!,
        memory,
        params,
        packed >>> 16,
      );
    },
  }),

  /**
   * As `launch`, with the words of {@link LAUNCH_EX} before `packed`. Each tensor map
   * among the parameters is described by the words of {@link MAP}. After the parameters come the
   * number of tensor maps, and the first parameter word of each.
   */
  launchEx: command({
    op: 2,
    call: 'cuLaunchKernelEx',
    words: { ...GRID, attributes: EX, packed: EX_PACKED },
    length: 15,
    operands: EX_OPERANDS,
    makes: undefined,
    trace: traceGrid(EX_OPERANDS),
    inFlight: 'kernel',
    copies: undefined,
    takesTime: true,
    visit: 'never',
    launches: 1,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands, maps }, memory, body, stream) => {
      const packed = memory[body + EX_PACKED]!;
      const params = operands.resolvePairs(memory, body + EX_PACKED + 1, packed & 0xffff);
      const bytes = packed >>> 16;
      const count = params + ((bytes + 3) >>> 2);
      for (let i = 0; i < memory[count]!; i++) maps.put(memory, params + memory[count + 1 + i]!);
      driver.cuLaunchKernelEx(
        launchConfig(memory, body, shared.streams[stream]!),
        shared.values[memory[body + GRID.function]!]!,
        memory,
        params,
        bytes,
      );
    },
  }),

  /** The executable graph and the number of references; then each reference (handle | access). */
  graphLaunch: command({
    op: 15,
    call: 'cuGraphLaunch',
    words: { graph: 0, references: 1 },
    length: 2,
    operands: GRAPH_OPERANDS,
    makes: undefined,
    trace: (memory, body) => ({
      kind: 'graph',
      graph: memory[body]!,
      memory: handlesOf(GRAPH_OPERANDS(memory, body)),
    }),
    inFlight: 'graph',
    copies: undefined,
    takesTime: true,
    visit: 'where short',
    launches: 1,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, stream) => {
      const end = body + 2 + memory[body + 1]!;
      for (let ref = body + 2; ref < end; ref++) operands.address(memory[ref]!);
      driver.cuGraphLaunch(shared.values[memory[body]!]!, shared.streams[stream]!);
    },
  }),

  /**
   * A function of a library, by its number. After `packed` (references | words of arguments << 16)
   * come a pair of words for each reference (handle | access, argument word), then the arguments.
   */
  libraryCall: command({
    op: 41,
    call: '',
    words: { function: 0, packed: 1 },
    length: 2,
    operands: LIBRARY_OPERANDS,
    makes: undefined,
    trace: (memory, body) => ({
      kind: 'library',
      memory: handlesOf(LIBRARY_OPERANDS(memory, body)),
    }),
    inFlight: 'call of a library',
    copies: undefined,
    takesTime: true,
    visit: 'never',
    launches: 'asked',
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands, libraries, limit }, memory, body, stream) => {
      const params = operands.resolvePairs(memory, body + 2, memory[body + 1]! & 0xffff);
      const number = memory[body]!;
      // The launches are counted also where the call fails: some may have been queued by then.
      for (let left = libraries.launches(number); left > 0; left--) limit.count(stream);
      const handle = shared.streams[stream]!;
      // On a GPU the function queues its work on the stream. On a CPU device it works while it is
      // called, so the stream's earlier work has to end before the call.
      if (isPolled(driver) && !isCapturing(shared, stream)) driver.cuStreamSynchronize(handle);
      libraries.call(number, handle, memory, params);
    },
  }),

  /** A kernel that prints was launched on the stream. */
  printed: command({
    op: 29,
    call: '',
    words: {},
    length: 0,
    operands: noOperands,
    makes: undefined,
    trace: undefined,
    inFlight: undefined,
    copies: undefined,
    takesTime: false,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'is skipped',
    mustWait: undefined,
    execute: (decoder, _memory, _body, stream) => {
      decoder.text?.expectText(stream);
      decoder.publishParked();
    },
  }),
} satisfies Record<string, Command>;

function launchConfig(memory: Int32Array, body: number, hStream: number): LaunchConfig {
  const ex = body + EX;
  const flags = memory[ex + LAUNCH_EX.flags]!;
  const attrs: LaunchAttributes = {};
  if ((flags & LAUNCH_COOPERATIVE) !== 0) attrs.cooperative = true;
  if ((flags & LAUNCH_CLUSTER) !== 0) {
    attrs.clusterDim = [
      memory[ex + LAUNCH_EX.clusterX]!,
      memory[ex + LAUNCH_EX.clusterY]!,
      memory[ex + LAUNCH_EX.clusterZ]!,
    ];
  }
  if ((flags & LAUNCH_PROGRAMMATIC) !== 0) attrs.programmaticStreamSerialization = true;
  if ((flags & LAUNCH_PRIORITY) !== 0) attrs.priority = memory[ex + LAUNCH_EX.priority]!;
  return {
    gridDimX: memory[body + GRID.gridX]!,
    gridDimY: memory[body + GRID.gridY]!,
    gridDimZ: memory[body + GRID.gridZ]!,
    blockDimX: memory[body + GRID.blockX]!,
    blockDimY: memory[body + GRID.blockY]!,
    blockDimZ: memory[body + GRID.blockZ]!,
    sharedMemBytes: memory[body + GRID.sharedBytes]!,
    hStream,
    attrs,
  };
}
