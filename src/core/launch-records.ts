/**
 * The records of launches that are not plain: of grids with several dimensions, with attributes,
 * with tensor maps. `Kernel.launch` writes plain ones itself.
 */
import { ACCESS_SHIFT, LAUNCH_EX, OP } from '../runtime/commands.js';
import { invalid } from '../ground/arguments.js';
import { putAttributes } from './kernel-attributes.js';
import type { KernelArgument } from './launch-arguments.js';
import type { LaunchOptions, LaunchShape } from './launch-shape.js';
import { putShape } from './launch-shape.js';
import type { Resource } from './resource.js';
import type { ParamLayout } from './signature.js';
import { TensorMap } from './tensor-map.js';

export interface PointerParam extends ParamLayout {
  /** Bits of a reference of OP.launchLine and OP.launchGrid, without the handle. */
  readonly lineBits: number;
}

/** The parts of a kernel that its records have. */
export interface RecordedKernel {
  readonly handle: number;
  readonly pointers: readonly PointerParam[];
  readonly maps: readonly PointerParam[];
  readonly paramWords: number;
  readonly paramBytes: number;
}

/** A launch's memory, in the order of the pointers: undefined where there is none. */
export type LaunchMemories = readonly (Resource | undefined)[];

/** The command that encodes the launch. */
export const opOf = ({ line, simple, extended }: LaunchShape): number =>
  line ? OP.launchLine : simple ? OP.launchGrid : extended ? OP.launchEx : OP.launch;

/** The words of the record, its beginning included. */
export function wordsOf(
  { paramWords, maps }: RecordedKernel,
  { line, simple, extended }: LaunchShape,
  references: number,
): number {
  if (line) return 9 + references + paramWords;
  if (simple) return 13 + references + paramWords;
  const more = extended ? LAUNCH_EX.words + 1 + maps.length : 0;
  return 13 + more + references * 2 + paramWords;
}

/** Writes OP.launchLine without its parameters. Returns the place of these. */
export function putLine(
  memory: Int32Array,
  body: number,
  { handle, pointers, paramBytes }: RecordedKernel,
  { gridX, blockX, sharedBytes }: LaunchShape,
  references: number,
  memories: LaunchMemories,
): number {
  memory[body] = handle;
  memory[body + 1] = gridX;
  memory[body + 2] = blockX;
  memory[body + 3] = sharedBytes;
  memory[body + 4] = references | (paramBytes << 16);
  return putLineReferences(memory, body + 5, pointers, memories);
}

/** Writes OP.launchGrid without its parameters. Returns the place of these. */
export function putGrid(
  memory: Int32Array,
  body: number,
  { handle, pointers, paramBytes }: RecordedKernel,
  shape: LaunchShape,
  references: number,
  memories: LaunchMemories,
): number {
  putShape(memory, body, handle, shape);
  memory[body + 8] = references | (paramBytes << 16);
  return putLineReferences(memory, body + 9, pointers, memories);
}

function putLineReferences(
  memory: Int32Array,
  first: number,
  pointers: readonly PointerParam[],
  memories: LaunchMemories,
): number {
  let at = first;
  for (let i = 0; i < pointers.length; i++) {
    const resource = memories[i];
    if (resource !== undefined) memory[at++] = resource.handle | pointers[i]!.lineBits;
  }
  return at;
}

/**
 * Writes a launch that neither OP.launchLine nor OP.launchGrid can encode, without its parameters.
 * Returns the place of these.
 */
export function putWide(
  memory: Int32Array,
  body: number,
  { handle, pointers, maps, paramWords, paramBytes }: RecordedKernel,
  shape: LaunchShape,
  references: number,
  memories: LaunchMemories,
  options: LaunchOptions,
): number {
  putShape(memory, body, handle, shape);
  let at = body + 8;
  if (shape.extended) {
    putAttributes(memory, at, options);
    at += LAUNCH_EX.words;
  }
  memory[at++] = references | (paramBytes << 16);
  for (let i = 0; i < pointers.length; i++) {
    const resource = memories[i];
    if (resource === undefined) continue;
    const param = pointers[i]!;
    memory[at++] = resource.handle | (param.access << ACCESS_SHIFT);
    memory[at++] = param.offset >> 2;
  }
  if (shape.extended) {
    let place = at + paramWords;
    memory[place++] = maps.length;
    for (let i = 0; i < maps.length; i++) memory[place++] = maps[i]!.offset >> 2;
  }
  return at;
}

/** @throws CudaArgumentError where the argument of a tensor map is none */
export function checkMaps(maps: readonly PointerParam[], args: readonly KernelArgument[]): void {
  for (const { index } of maps)
    if (!(args[index] instanceof TensorMap))
      throw invalid(`args[${index}]`, 'a tensor map', args[index]);
}
