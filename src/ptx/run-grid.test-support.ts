// Test only: runs grids of compiled kernels on one thread, in their own memory, with a bump
// allocator.

import { readFileSync } from 'node:fs';
import {
  CTX,
  EXPLICIT_CLUSTER,
  SCRATCH_STATES,
  SHARED_ALIGNMENT,
  STATUS,
  compilePtx,
  relocate,
} from './index.js';
import type { PtxCompileOptions, WasmKernel, WasmModule, LaneCode } from './index.js';

export type Argument =
  | { f32: number }
  | { f64: number }
  | { i32: number }
  | { i64: bigint | number }
  | { bytes: Uint8Array };
export type Dimensions = readonly [number, number?, number?];

export interface Launch {
  grid: Dimensions;
  block: Dimensions;
  /** The size of the grid that blocks read, if it differs from `grid`. */
  told?: Dimensions;
  dynamicShared?: number;
  /** Fuel per call; each call that yields is resumed with the same amount. */
  fuel?: number;
  /** Blocks take turns instead of running one after the other, as a cooperative launch requires. */
  interleave?: boolean;
  /** Blocks of a cluster. All blocks take turns then. */
  cluster?: Dimensions;
  /** Calls after which a launch that does not end is given up. */
  maxCalls?: number;
}

export interface Outcome {
  status: number;
  calls: number;
  fault?: { kind: number; address: bigint; thread: number; line: number; block: number };
}

const CONTEXT_AREA = 65536;

export class Grid {
  readonly module: WasmModule;
  readonly memory: WebAssembly.Memory;
  readonly printed: { format: string; args: number }[] = [];
  readonly asserts: string[] = [];
  private readonly instance: WebAssembly.Instance;
  private readonly env: Record<string, WebAssembly.ExportValue>;
  private readonly simd: boolean;
  private readonly laneInstances = new Map<LaneCode, WebAssembly.Instance>();
  private top: number;
  private lastContext = 0;
  readonly dataBase: number;

  constructor(source: string, options: PtxCompileOptions & { pages?: number } = {}) {
    this.module = compilePtx(source, options);
    const pages = options.pages ?? 512;
    this.memory = new WebAssembly.Memory({
      initial: pages,
      maximum: Math.max(pages, 65536),
      shared: true,
    });
    this.top = CONTEXT_AREA + 4096;
    this.dataBase = this.allocate(this.module.data.length, 256);
    this.bytes().set(this.module.data, this.dataBase);
    relocate(this.view(), this.dataBase, this.module.relocations);
    const env: Record<string, WebAssembly.ExportValue> = {
      memory: this.memory,
      dataBase: new WebAssembly.Global({ value: 'i32', mutable: false }, this.dataBase),
      host_vprintf: (format: number, args: number) =>
        this.printed.push({ format: this.text(format), args }),
      host_malloc: (size: bigint) => BigInt(this.allocate(Number(size))),
      host_free: () => undefined,
      host_set_conditional: () => undefined,
      probe: (rounds: number) => rounds + 1,
      host_assert: (message: number) => {
        this.asserts.push(this.text(message));
      },
    };
    this.env = env;
    this.simd = options.simd === true;
    this.instance = new WebAssembly.Instance(
      new WebAssembly.Module(this.module.wasm as Uint8Array<ArrayBuffer>),
      { env },
    );
  }

  bytes(): Uint8Array {
    return new Uint8Array(this.memory.buffer);
  }

  view(): DataView {
    return new DataView(this.memory.buffer);
  }

  text(address: number): string {
    const bytes = this.bytes();
    let end = address;
    while (bytes[end]) end++;
    return new TextDecoder().decode(bytes.slice(address, end));
  }

  allocate(size: number, align = 256): number {
    const at = Math.ceil(this.top / align) * align;
    this.top = at + size;
    if (this.top > this.memory.buffer.byteLength) throw new RangeError('test memory is full');
    return at;
  }

  /** Makes room again for what was allocated from this address on. */
  release(address: number): void {
    this.top = address;
  }

  /** Copies an array into memory; the result is a view of the copy. */
  put<
    T extends
      | Float32Array
      | Float64Array
      | Int32Array
      | Uint32Array
      | Uint8Array
      | Uint16Array
      | BigInt64Array
      | BigUint64Array,
  >(values: T): { address: number; view: T } {
    const address = this.allocate(values.byteLength);
    const View = values.constructor as new (
      buffer: ArrayBufferLike,
      offset: number,
      length: number,
    ) => T;
    const view = new View(this.memory.buffer, address, values.length);
    view.set(values as never);
    return { address, view };
  }

  kernel(name: string): WasmKernel {
    const kernel = this.module.kernels.find((candidate) => candidate.name === name);
    if (!kernel) throw new RangeError(`no kernel ${name}`);
    return kernel;
  }

  /** The kernel in lanes if `simd` is set and it compiles in lanes, else the scalar code. */
  private code(
    kernel: WasmKernel,
    { block: [x, y = 1, z = 1] }: Launch,
  ): { call: (ctx: number, fuel: number) => number; blockBytes(threads: number): number } {
    const lanes = this.simd ? kernel.inLanes([x, y, z]) : 'not asked for';
    const code = typeof lanes === 'string' ? kernel : lanes;
    let { instance } = this;
    if (typeof lanes !== 'string') {
      instance =
        this.laneInstances.get(lanes) ??
        new WebAssembly.Instance(new WebAssembly.Module(lanes.wasm as Uint8Array<ArrayBuffer>), {
          env: this.env,
        });
      this.laneInstances.set(lanes, instance);
    }
    return {
      call: instance.exports[code.exportName] as (ctx: number, fuel: number) => number,
      blockBytes: (threads) => code.blockBytes(threads),
    };
  }

  /** The number of threads that run at once. */
  width(name: string, { block: [x, y = 1, z = 1] }: Launch): number {
    const lanes = this.simd ? this.kernel(name).inLanes([x, y, z]) : 'not asked for';
    return typeof lanes === 'string' ? 1 : lanes.width;
  }

  /**
   * Runs a grid whose blocks do not yield with as little work as possible between them, and a row
   * of blocks in one call where the code allows it. It is for timing.
   */
  repeat(name: string, args: readonly Argument[], launch: Launch): number {
    const first = this.run(name, args, { ...launch, grid: [1, 1, 1] });
    if (first.status !== STATUS.done) return first.status;
    const ctx = this.lastContext;
    const kernel = this.kernel(name);
    const { call } = this.code(kernel, launch);
    const words = new Uint32Array(this.memory.buffer);
    const [gx, gy = 1] = launch.grid;
    words.set([gx, gy, 1], (ctx + CTX.gridDim) >> 2);
    const lanes = this.simd
      ? kernel.inLanes([launch.block[0], launch.block[1] ?? 1, launch.block[2] ?? 1])
      : 'not asked for';
    const { runsOn } = typeof lanes === 'string' ? kernel : lanes;
    const scratch = words[(ctx + CTX.scratch) >> 2]! >> 2;
    const stateful = kernel.yields
      ? scratch + SCRATCH_STATES / 4 + words[(ctx + CTX.threads) >> 2]!
      : scratch;
    for (let y = 0; y < gy; y++) {
      words[(ctx + CTX.ctaid + 4) >> 2] = y;
      for (let x = 0; x < gx; x += runsOn ? gx : 1) {
        words[(ctx + CTX.ctaid) >> 2] = x;
        if (runsOn) words[(ctx + CTX.further) >> 2] = gx - 1;
        words.fill(0, scratch, stateful);
        const status = call(ctx, 0x7fffffff);
        if (status !== STATUS.done) return status;
      }
    }
    return STATUS.done;
  }

  /** The block, along x, and the thread of the fault that ended `repeat`. */
  lastFault(): { block: number; thread: number } {
    const view = this.view();
    return {
      block: view.getUint32(this.lastContext + CTX.ctaid, true),
      thread: view.getUint32(this.lastContext + CTX.faultThread, true),
    };
  }

  run(name: string, args: readonly Argument[], launch: Launch): Outcome {
    const kernel = this.kernel(name);
    const { call, blockBytes } = this.code(kernel, launch);
    const [gx, gy = 1, gz = 1] = launch.grid;
    const [toldX, toldY = 1, toldZ = 1] = launch.told ?? launch.grid;
    const [bx, by = 1, bz = 1] = launch.block;
    const threads = bx * by * bz;
    const mark = this.top;
    const params = this.allocate(Math.max(kernel.paramBytes, 16));
    const view = this.view();
    kernel.params.forEach((param, index) => {
      const arg = args[index];
      if (!arg) throw new RangeError(`${name} needs ${kernel.params.length} arguments`);
      const at = params + param.offset;
      if ('f32' in arg) view.setFloat32(at, arg.f32, true);
      else if ('f64' in arg) view.setFloat64(at, arg.f64, true);
      else if ('i32' in arg) view.setInt32(at, arg.i32, true);
      else if ('i64' in arg) view.setBigInt64(at, BigInt.asIntN(64, BigInt(arg.i64)), true);
      else this.bytes().set(arg.bytes, at);
    });
    const sharedBytes = kernel.sharedBytes + (launch.dynamicShared ?? 0);
    const scratchAt = SHARED_ALIGNMENT + Math.ceil((sharedBytes + 1) / 128) * 128;
    const slotBytes =
      Math.ceil((scratchAt + blockBytes(threads)) / SHARED_ALIGNMENT) * SHARED_ALIGNMENT;
    const blocks = gx * gy * gz;
    const workspace = this.allocate(64);
    const contexts: number[] = [];
    const [cx, cy = 1, cz = 1] = launch.cluster ?? [1];
    const prepare = (block: number, slot: number, rank = 0): number => {
      const ctx = slot;
      this.lastContext = ctx;
      const shared = ctx + SHARED_ALIGNMENT;
      const scratch = ctx + scratchAt;
      this.bytes().fill(0, ctx, scratch + blockBytes(threads));
      const fields: [number, number][] = [
        [CTX.gridDim, toldX],
        [CTX.gridDim + 4, toldY],
        [CTX.gridDim + 8, toldZ],
        [CTX.blockDim, bx],
        [CTX.blockDim + 4, by],
        [CTX.blockDim + 8, bz],
        [CTX.ctaid, block % gx],
        [CTX.ctaid + 4, Math.floor(block / gx) % gy],
        [CTX.ctaid + 8, Math.floor(block / (gx * gy))],
        [CTX.params, params],
        [CTX.shared, shared],
        [CTX.sharedBytes, sharedBytes],
        [CTX.scratch, scratch],
        [CTX.threads, threads],
        [CTX.memoryTop, this.memory.buffer.byteLength],
        [CTX.workspace, workspace],
        [CTX.clusterRank, rank],
        [CTX.clusterStride, launch.cluster ? slotBytes : 0],
        [
          CTX.cluster,
          launch.cluster ? EXPLICIT_CLUSTER | (cx - 1) | ((cy - 1) << 8) | ((cz - 1) << 16) : 0,
        ],
      ];
      for (const [offset, value] of fields) view.setUint32(ctx + offset, value, true);
      return ctx;
    };
    const fuel = launch.fuel ?? 0x7fffffff;
    let calls = 0;
    /** A block in which threads have failed assertions runs to its end. */
    const run = (ctx: number): number => {
      const status = call(ctx, fuel);
      return status === STATUS.done && view.getUint32(ctx + CTX.faultKind, true) !== 0
        ? STATUS.fault
        : status;
    };
    const fail = (ctx: number, block: number): Outcome => ({
      status: STATUS.fault,
      calls,
      fault: {
        kind: view.getUint32(ctx + CTX.faultKind, true),
        address: view.getBigUint64(ctx + CTX.faultAddress, true),
        thread: view.getUint32(ctx + CTX.faultThread, true),
        line: view.getUint32(ctx + CTX.faultLine, true),
        block,
      },
    });
    this.bytes().fill(0, workspace, workspace + 64);
    try {
      if (launch.interleave || launch.cluster) {
        // The blocks of a cluster lie one after the other.
        const first = this.allocate(slotBytes * blocks, SHARED_ALIGNMENT);
        for (let block = 0; block < blocks; block++) {
          const [x, y, z] = [
            block % gx,
            Math.floor(block / gx) % gy,
            Math.floor(block / (gx * gy)),
          ];
          const cluster =
            Math.floor(x / cx) + (gx / cx) * (Math.floor(y / cy) + (gy / cy) * Math.floor(z / cz));
          const rank = (x % cx) + cx * ((y % cy) + cy * (z % cz));
          contexts.push(prepare(block, first + (cluster * cx * cy * cz + rank) * slotBytes, rank));
        }
        const open = new Set(contexts.keys());
        while (open.size) {
          for (const block of [...open]) {
            const status = run(contexts[block]!);
            if (++calls > (launch.maxCalls ?? Infinity)) return { status: STATUS.yielded, calls };
            if (status === STATUS.fault) return fail(contexts[block]!, block);
            if (status === STATUS.done) open.delete(block);
          }
        }
        return { status: STATUS.done, calls };
      }
      const slot = this.allocate(slotBytes, SHARED_ALIGNMENT);
      for (let block = 0; block < blocks; block++) {
        const ctx = prepare(block, slot);
        for (;;) {
          const status = run(ctx);
          calls++;
          if (status === STATUS.done) break;
          if (status === STATUS.fault) return fail(ctx, block);
          if (calls > (launch.maxCalls ?? Infinity)) return { status, calls };
        }
      }
      return { status: STATUS.done, calls };
    } finally {
      this.top = mark;
    }
  }
}

/** The text of a sample kernel file, such as `sample('k01_saxpy')`. */
export function sample(name: string, target: 'sm_75' | 'sm_80' | 'sm_90' = 'sm_80'): string {
  return readFileSync(
    new URL(`../../test/ptx/samples/${target}/${name}.ptx`, import.meta.url),
    'utf8',
  );
}

/** A module around one kernel body. */
export function kernelText(name: string, params: string, body: string, before = ''): string {
  // Matrices of elements of few bits exist on sm_120a only, those of warp groups on sm_90a.
  const target = /\bwgmma\./.test(body) ? 'sm_90a' : /\bmma\./.test(body) ? 'sm_120a' : 'sm_100a';
  return (
    `.version 9.0\n.target ${target}\n.address_size ` +
    `64\n${before}\n.visible .entry ${name}(${params})\n{\n${body}\n}\n`
  );
}
