/**
 * The memory of one device: a shared WebAssembly.Memory that kernels and copies work on, and the
 * record of its allocations. It is reserved as a whole and grown in large steps, and V8 commits
 * pages when they are touched, so a device of several GiB costs nothing until it is used.
 *
 * Devices of one driver share the 4 GiB of 32-bit addresses: the allocations of each lie in an
 * interval of its own (unified addressing), so that an address determines its device.
 */
import { Arena } from './arena.js';
import type { Range } from './arena.js';
import { bulkMoves } from './bulk-moves.js';
import type { BulkMoves } from './bulk-moves.js';
import type { ByteSpace, SpaceWatch } from './byte-space.js';
import { GRANULE } from './arena.js';
import { GranuleIndex } from './granule-index.js';
import type { MemoryPool } from './pool.js';
import { Quarantine } from '../check/quarantine.js';

export const WASM_PAGE = 65536;
/** The end of 32-bit addresses. */
export const ADDRESS_END = 2 ** 32;
const GROWTH = 64 * 2 ** 20;

/**
 * Arrays that a kernel reads together have equal lengths, often a power of two, and would begin at
 * the same place of every cache and bank of memory. Large ones have this distance from the range
 * before them: saxpy over 64 MiB took 8.9 ms with adjacent arrays, 7.6 ms with 32 KiB and more
 * between them.
 */
const APART = 36 * 1024;
const LARGE = 4 * 2 ** 20;
const LARGE_PAGE = 2 * 2 ** 20;

/**
 * `graph` memory belongs to allocation nodes of a graph, `heap` to a kernel's malloc, `texture` to
 * a descriptor.
 */
export type AllocationKind =
  'plain' | 'pitched' | 'managed' | 'pool' | 'graph' | 'module' | 'heap' | 'array' | 'texture';

export interface Allocation {
  readonly memory: DeviceMemory;
  readonly range: Range;
  readonly address: number;
  /** The requested bytes; the range is as long or a little longer. */
  bytes: number;
  readonly kind: AllocationKind;
  readonly pool: MemoryPool | undefined;
  /** The value of CU_POINTER_ATTRIBUTE_BUFFER_ID. */
  id: number;
}

/** Observes the changes of a device's memory. Addresses are the device's. */
export interface MemoryWatch extends SpaceWatch {
  allocated(allocation: Allocation): void;
  freed(allocation: Allocation): void;
}

/** Unowned bytes after each allocation of memory that is checked. */
const WATCHED_GAP = GRANULE;

export class DeviceMemory implements ByteSpace {
  readonly kind = 'device';
  readonly origin = 0;
  readonly base: number;
  readonly capacity: number;
  readonly memory: WebAssembly.Memory;
  bytes!: Uint8Array;
  words!: Int32Array;
  private readonly arena: Arena;
  private readonly starts: GranuleIndex;
  private readonly live = new Map<number, Allocation>();
  private readonly moves: BulkMoves;
  private readonly askForLargePages: ((memory: Uint8Array) => void) | undefined;
  /** Where the memory begins for which no large pages were requested. */
  private smallPages: number;
  private nextId = 1;
  watch: MemoryWatch | undefined = undefined;
  private readonly quarantine = new Quarantine();
  /** Bytes after allocations. */
  private gaps = 0;
  /**
   * Bytes that pools count as theirs although they are in quarantine, less those that they do not
   * count yet although they are theirs.
   */
  promised = 0;

  /** `askForLargePages` is called with memory that is about to be used for large allocations. */
  constructor(base: number, capacity: number, askForLargePages?: (memory: Uint8Array) => void) {
    this.base = base;
    this.askForLargePages = askForLargePages;
    this.capacity = capacity;
    this.memory = new WebAssembly.Memory({
      initial: Math.ceil(base / WASM_PAGE),
      maximum: Math.ceil((base + capacity) / WASM_PAGE),
      shared: true,
    });
    this.arena = new Arena(base, capacity);
    this.smallPages = Math.ceil(base / LARGE_PAGE) * LARGE_PAGE;
    this.starts = new GranuleIndex(Math.ceil(capacity / GRANULE));
    this.moves = bulkMoves(this.memory);
    this.refreshViews();
  }

  /** The free bytes, as they would be without the checker. */
  get freeBytes(): number {
    return this.arena.freeBytes + this.quarantine.bytes + this.gaps - this.promised;
  }

  largestFree(): number {
    return this.arena.largestFree();
  }

  /** The end of the memory, as kernels use it: 0 stands for 4 GiB. */
  get top(): number {
    return this.bytes.length >= ADDRESS_END ? 0 : this.bytes.length;
  }

  /**
   * Takes memory that only the device uses: contexts of blocks and the like. No copy may name it.
   */
  reserve(bytes: number): Range | undefined {
    const ahead = bytes >= LARGE ? APART : 0;
    const range =
      this.arena.take(bytes, ahead) ??
      (this.quarantine.empty((old) => this.arena.giveBack(old))
        ? this.arena.take(bytes, ahead)
        : undefined);
    if (range === undefined) return undefined;
    if (this.cover(range.address + range.bytes)) {
      if (bytes >= LARGE) this.enlargePages();
      return range;
    }
    this.arena.giveBack(range);
    return undefined;
  }

  giveBack(range: Range): void {
    if (this.watch === undefined) this.arena.giveBack(range);
    else this.quarantine.keep(range, this.capacity, (old) => this.arena.giveBack(old));
  }

  allocate(bytes: number, kind: AllocationKind, pool?: MemoryPool): Allocation | undefined {
    const range = this.reserve(bytes + this.gap);
    return range === undefined ? undefined : this.adopt(range, bytes, kind, pool);
  }

  /** The bytes that an allocation takes beyond its own. */
  get gap(): number {
    return this.watch === undefined ? 0 : WATCHED_GAP;
  }

  /** Makes a range that is already taken a live allocation. */
  adopt(range: Range, bytes: number, kind: AllocationKind, pool?: MemoryPool): Allocation {
    const allocation: Allocation = {
      memory: this,
      range,
      address: range.address,
      bytes,
      kind,
      pool,
      id: 0,
    };
    this.gaps += this.gap;
    this.revive(allocation, bytes);
    return allocation;
  }

  /** Makes the allocation live again, with a new identity. */
  revive(allocation: Allocation, bytes: number): void {
    allocation.bytes = bytes;
    allocation.id = this.nextId++;
    this.live.set(allocation.address, allocation);
    this.starts.add((allocation.address - this.base) / GRANULE);
    this.watch?.allocated(allocation);
  }

  /** Ends the allocation for calls. Its range stays taken until `giveBack`. */
  retire(allocation: Allocation): void {
    this.live.delete(allocation.address);
    this.starts.delete((allocation.address - this.base) / GRANULE);
  }

  /** Frees the memory of an allocation that was retired. */
  reclaim(allocation: Allocation): void {
    if (allocation.pool === undefined) {
      this.abandon(allocation);
      return;
    }
    this.watch?.freed(allocation);
    this.gaps -= this.gap;
    allocation.pool.put(this, allocation.range);
  }

  /** As {@link reclaim}, without its pool. */
  abandon(allocation: Allocation): void {
    this.watch?.freed(allocation);
    this.gaps -= this.gap;
    this.giveBack(allocation.range);
  }

  /** Returns the live allocation that begins at `address`. */
  at(address: number): Allocation | undefined {
    return this.live.get(address);
  }

  /** Returns the live allocation that contains the byte at `address`. */
  around(address: number): Allocation | undefined {
    if (!this.owns(address)) return undefined;
    const start = this.starts.atOrBelow(Math.floor((address - this.base) / GRANULE));
    if (start < 0) return undefined;
    const allocation = this.live.get(this.base + start * GRANULE)!;
    return address < allocation.address + allocation.bytes ? allocation : undefined;
  }

  owns(address: number): boolean {
    return address >= this.base && address < this.base + this.capacity;
  }

  fill(at: number, byte: number, bytes: number): void {
    this.moves.fill(at, byte, bytes);
  }

  move(to: number, from: number, bytes: number): void {
    this.moves.copy(to, from, bytes);
  }

  private enlargePages(): void {
    const { bytes, smallPages, askForLargePages } = this;
    if (askForLargePages === undefined || bytes.length <= smallPages) return;
    askForLargePages(bytes.subarray(smallPages));
    this.smallPages = bytes.length;
  }

  /** Grows the memory so that it reaches `end`; false where the machine has no more. */
  private cover(end: number): boolean {
    const have = this.bytes.length;
    if (end <= have) return true;
    const limit = Math.ceil((this.base + this.capacity) / WASM_PAGE) * WASM_PAGE;
    const wanted = Math.min(limit, Math.max(end, have + GROWTH));
    try {
      this.memory.grow(Math.ceil((wanted - have) / WASM_PAGE));
    } catch {
      return false;
    }
    this.refreshViews();
    return true;
  }

  private refreshViews(): void {
    this.bytes = new Uint8Array(this.memory.buffer);
    this.words = new Int32Array(this.memory.buffer);
  }
}
