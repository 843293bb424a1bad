/**
 * Finds the object that contains an address or is next to it: allocations of the host and of
 * kernels, variables of modules, of shared memory and of frames, and freed memory.
 */
import type { PlacedVariable } from '../../../ptx/index.js';
import type { CheckMemory } from '../../../ground/check-report.js';
import { hex } from '../failure.js';
import type { CpuModule } from '../kernels/module.js';
import type { Allocation, DeviceMemory } from '../memory/device-memory.js';
import type { BlockWatch } from './block-watch.js';

/** Number of freed allocations that are kept. */
const MOST_FREED = 4096;
/** Accesses further past an end than this are not attributed to the object. */
const MOST_DISTANCE = 65536;

/**
 * Kinds of memory that belong to an object, as a module's memory does to the module, and are no
 * leak by themselves.
 */
const LABELS: Readonly<Partial<Record<Allocation['kind'], string>>> = {
  graph: 'memory of a graph',
  array: 'an array',
  texture: 'the description of a texture or surface',
};

interface Known {
  address: number;
  bytes: number;
  space: CheckMemory['space'];
  label?: string;
  root?: number;
  handle?: number;
}

export class MemoryMap {
  private readonly memory: DeviceMemory;
  private readonly live = new Map<number, Known>();
  private readonly heap = new Map<number, Known>();
  private readonly variables = new Map<number, Known[]>();
  private readonly gone: Known[] = [];

  constructor(memory: DeviceMemory) {
    this.memory = memory;
  }

  allocated({ address, bytes, kind }: Allocation): void {
    const label = LABELS[kind];
    this.live.set(address, {
      address,
      bytes,
      space: 'global',
      ...(label === undefined ? {} : { label }),
    });
  }

  placed({ address }: Allocation, { compiled, dataAddress }: CpuModule): void {
    this.variables.set(
      address,
      compiled.variables.map(({ name, offset, size, space }) => ({
        address: dataAddress + offset,
        bytes: size,
        space,
        label: name,
      })),
    );
  }

  /** Records the operation that allocated the memory, and its handle. */
  name(address: number, root: number, handle: number): void {
    const known = this.live.get(address);
    if (known === undefined) return;
    known.root = root;
    known.handle = handle;
  }

  freed({ address }: Allocation): void {
    this.variables.delete(address);
    const known = this.live.get(address);
    if (known === undefined) return;
    this.live.delete(address);
    this.bury(known);
  }

  heapTaken(address: number, bytes: number): void {
    this.heap.set(address, { address, bytes, space: 'heap' });
  }

  /** Records a free. Returns the block's size, or undefined where no block begins there. */
  heapFreed(address: number): number | undefined {
    const known = this.heap.get(address);
    if (known === undefined) return undefined;
    this.heap.delete(address);
    this.bury(known);
    return known.bytes;
  }

  private bury(known: Known): void {
    this.gone.push(known);
    if (this.gone.length > MOST_FREED) this.gone.shift();
  }

  /** Returns the memory that was never freed, of the kinds that the program has to free. */
  leaks(): CheckMemory[] {
    return [...this.live.values()]
      .filter(({ label }) => label === undefined)
      .map((known) => shown(known, 0));
  }

  find(watch: BlockWatch | undefined, address: number, bytes = 1): CheckMemory | undefined {
    if (watch !== undefined) {
      const inBlock = inWindow(watch, address, bytes);
      if (inBlock !== undefined) return inBlock;
    }
    const candidates = [
      ...this.live.values(),
      ...this.heap.values(),
      ...[...this.variables.values()].flat(),
    ];
    const around = candidates.find(
      (known) => address >= known.address && address < known.address + known.bytes,
    );
    if (around !== undefined) return shown(around, address - around.address);
    for (let i = this.gone.length - 1; i >= 0; i--) {
      const known = this.gone[i]!;
      if (address >= known.address && address < known.address + known.bytes)
        return { ...shown(known, address - known.address), freed: true };
    }
    return nearest(candidates, address, bytes);
  }

  /**
   * As {@link find}, for an instruction that accesses shared memory only, however far off its
   * address is.
   */
  findShared(watch: BlockWatch, address: number): CheckMemory | undefined {
    const found = this.find(watch, address);
    const isWithin = found !== undefined && found.offset >= 0 && found.offset < found.bytes;
    return isWithin ? found : (nearest(sharedVariables(watch), address, 1) ?? found);
  }

  owns(address: number): boolean {
    return this.memory.owns(address);
  }
}

const named = (
  list: readonly PlacedVariable[],
  base: number,
  space: CheckMemory['space'],
): Known[] =>
  list.map(({ name, offset, size }) => ({
    address: base + offset,
    bytes: size,
    space,
    label: name,
  }));

const DYNAMIC = 'dynamic shared memory';

/**
 * Returns the variables of a block, and dynamic shared memory also where the launch gave none to a
 * kernel that uses it.
 */
function sharedVariables({ launch: { check, sharedBytes, func }, shared }: BlockWatch): Known[] {
  const variables = named(check.shared, shared, 'shared');
  const dynamic = sharedBytes - check.dynamicShared;
  if (dynamic > 0 || func.kernel.usesDynamicShared)
    variables.push({
      address: shared + check.dynamicShared,
      bytes: dynamic,
      space: 'shared',
      label: DYNAMIC,
    });
  return variables;
}

function inWindow(watch: BlockWatch, address: number, bytes: number): CheckMemory | undefined {
  const { check, sharedBytes: windowBytes, threads } = watch.launch;
  if (address >= watch.shared - 128 && address < watch.shared + windowBytes + 128) {
    return nearest(sharedVariables(watch), address, bytes);
  }
  if (address >= watch.frames && address < watch.frames + check.frameBytes * threads) {
    const base =
      watch.frames + Math.floor((address - watch.frames) / check.frameBytes) * check.frameBytes;
    return nearest(named(check.frame, base, 'local'), address, bytes);
  }
  if (address >= watch.stack && address < watch.stack + check.stackBytes) {
    const { check: module } = watch.launch.func.module.compiled;
    const variables = watch.calls.flatMap((call) => {
      const { name, variables: own } = module!.frames[call.number]!;
      return named(own, call.address, 'local').map((known) => ({
        ...known,
        label: `${known.label} of ${name}`,
      }));
    });
    return (
      nearest(variables, address, bytes) ?? {
        space: 'local',
        label: 'the stack of called functions',
        address: watch.stack,
        bytes: check.stackBytes,
        offset: address - watch.stack,
      }
    );
  }
  return undefined;
}

/** Returns the candidate that contains the address, or else the one with the nearest edge. */
function nearest(
  candidates: readonly Known[],
  address: number,
  bytes: number,
): CheckMemory | undefined {
  let best: Known | undefined;
  let least = MOST_DISTANCE;
  for (const known of candidates) {
    const distance =
      address < known.address
        ? Math.max(0, known.address - address - bytes) + 1
        : Math.max(0, address - known.address - known.bytes + 1);
    if (distance >= least) continue;
    least = distance;
    best = known;
  }
  return best && shown(best, address - best.address);
}

function shown({ address, bytes, space, label, root, handle }: Known, offset: number): CheckMemory {
  return {
    space,
    address,
    bytes,
    offset,
    ...(label === undefined ? {} : { label }),
    ...(root === undefined ? {} : { root, handle: handle! }),
  };
}

/** Returns a text such as `8 bytes past the end of x, 1024 bytes of shared memory at 0x10100`. */
export function nameMemory({
  space,
  label,
  address,
  bytes,
  offset,
  freed,
  stack,
}: CheckMemory): string {
  const where =
    offset < 0
      ? `${-offset} bytes before`
      : offset === bytes
        ? 'just past the end of'
        : offset > bytes
          ? `${offset - bytes} bytes past the end of`
          : `at byte ${offset} of`;
  const what =
    `${label === undefined ? '' : `${label}, `}${bytes} bytes of ` +
    `${freed ? 'freed ' : ''}${space} memory at ${hex(address)}`;
  const given =
    space === 'shared' && label === DYNAMIC
      ? `: the launch gave ${bytes} bytes of it (sharedBytes)`
      : '';
  return `${where} ${what}${given}${stack === undefined ? '' : `\n  allocated ${stack}`}`;
}
