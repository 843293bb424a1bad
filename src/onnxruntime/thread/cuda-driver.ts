/**
 * The calls of the CUDA driver that record a run in a graph: on this thread, in the context that
 * the whole process shares.
 */
import { crewKoffi, whileLoading } from '../../native/crew-thread.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import { NativeMemory } from '../../native/native-memory.js';
import { openLibrary } from '../../native/open-library.js';
import type { RecordedGraph } from './messages.js';
import { Refused } from './refused.js';

const P = 'uintptr_t';
/** Symbols, and the types of their arguments; each returns a CUresult. */
const FUNCTIONS = {
  cuInit: ['uint'],
  cuDevicePrimaryCtxRetain: [P, 'int'],
  cuCtxSetCurrent: [P],
  cuMemAlloc_v2: [P, 'size_t'],
  cuMemFree_v2: [P],
  cuMemsetD8Async: [P, 'uint8_t', 'size_t', P],
  cuPointerGetAttribute: [P, 'int', P],
  cuStreamCreate: [P, 'uint'],
  cuStreamDestroy_v2: [P],
  cuStreamSynchronize: [P],
  cuStreamBeginCapture_v2: [P, 'int'],
  cuStreamEndCapture: [P, P],
  cuGraphGetNodes: [P, P, P],
  cuGraphNodeGetType: [P, P],
  cuGraphMemcpyNodeGetParams: [P, P],
  cuGraphInstantiateWithFlags: [P, P, 'uint64_t'],
  cuGraphUpload: [P, P],
  cuGraphExecDestroy: [P],
  cuGraphDestroy: [P],
} as const satisfies Record<string, readonly string[]>;

type DriverFunction = keyof typeof FUNCTIONS;

/** CU_STREAM_NON_BLOCKING */
const NON_BLOCKING = 1;
/** CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: calls of other threads do not affect the capture. */
const THREAD_LOCAL = 1;
/** CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
const MEMORY_TYPE = 2;
/** CUmemorytype */
const [HOST_MEMORY, DEVICE_MEMORY, UNIFIED_ADDRESS] = [1, 2, 4];
/** CUgraphNodeType */
const MEMCPY_NODE = 1;
/** Kernels, copies, fills, empty nodes, and nodes that allocate and free memory. */
const REPEATABLE: readonly number[] = [0, MEMCPY_NODE, 2, 5, 10, 11];
/** Kernels, copies and fills. */
const WORKING: readonly number[] = [0, MEMCPY_NODE, 2];
/**
 * Offsets in a CUDA_MEMCPY3D, in bytes: the memory types, addresses of the host and of the device
 * of its two sides.
 */
const SIDES = [
  { type: 32, host: 40, device: 48 },
  { type: 120, host: 128, device: 136 },
] as const;

let driver: CudaDriver | undefined;

/** Returns the driver, with the context of that GPU current on this thread. */
export function cudaDriver(ordinal: number): CudaDriver {
  driver ??= whileLoading(() => new CudaDriver());
  driver.use(ordinal);
  return driver;
}

export class CudaDriver {
  private readonly koffi = crewKoffi();
  private readonly calls: Readonly<Record<DriverFunction, (...args: unknown[]) => number>>;
  private readonly out = new NativeMemory(this.koffi, 64);
  /** The contexts by ordinals. They stay retained: the process's contexts are never released. */
  private readonly contexts = new Map<number, number>();

  constructor() {
    const { library } = openLibrary(this.koffi, KNOWN_LIBRARIES.cuda);
    this.calls = Object.fromEntries(
      Object.entries(FUNCTIONS).map(([name, args]) => [
        name,
        library.func(`int ${name}(${args.join()})`) as (...args: unknown[]) => number,
      ]),
    ) as typeof this.calls;
    this.do('cuInit', 0);
  }

  use(ordinal: number): void {
    let context = this.contexts.get(ordinal);
    if (context === undefined)
      this.contexts.set(ordinal, (context = this.give('cuDevicePrimaryCtxRetain', ordinal)));
    this.do('cuCtxSetCurrent', context);
  }

  makeStream(): number {
    return this.give('cuStreamCreate', NON_BLOCKING);
  }

  destroyStream(stream: number): void {
    this.do('cuStreamDestroy_v2', stream);
  }

  synchronize(stream: number): void {
    this.do('cuStreamSynchronize', stream);
  }

  /**
   * Allocates memory full of zeros for the length of `body`, which has to wait for the work that it
   * starts.
   */
  withZeros(bytes: number, stream: number, body: (address: number) => void): void {
    const address = this.give('cuMemAlloc_v2', Math.max(1, bytes));
    try {
      this.do('cuMemsetD8Async', address, 0, Math.max(1, bytes), stream);
      body(address);
    } finally {
      this.do('cuMemFree_v2', address);
    }
  }

  /**
   * Records the work that `body` queues on the stream as a graph; none of it is run.
   *
   * @throws Refused where some of it cannot be recorded, or would not be the same each time
   */
  record(stream: number, body: () => void): RecordedGraph {
    this.do('cuStreamBeginCapture_v2', stream, THREAD_LOCAL);
    try {
      body();
    } catch (error) {
      this.destroy(this.endCapture(stream).graph);
      throw error;
    }
    const { result, graph } = this.endCapture(stream);
    let exec = 0;
    try {
      if (result !== 0 || graph === 0) throw refused(`its capture failed (CUresult ${result})`);
      const nodes = this.checkedNodes(graph);
      exec = this.give('cuGraphInstantiateWithFlags', graph, 0);
      this.do('cuGraphUpload', exec, stream);
      this.synchronize(stream);
      return { graph, exec, nodes };
    } catch (error) {
      this.destroy(graph, exec);
      throw error;
    }
  }

  /** Returns the result of the call, and the graph: 0 where there is none. */
  private endCapture(stream: number): { result: number; graph: number } {
    this.out.setU64(0, 0);
    const result = this.calls.cuStreamEndCapture(stream, this.out.address);
    return { result, graph: this.out.u64(0) };
  }

  /** Destroys the parts of a graph that exist. */
  private destroy(graph: number, exec = 0): void {
    if (exec !== 0) this.do('cuGraphExecDestroy', exec);
    if (graph !== 0) this.do('cuGraphDestroy', graph);
  }

  /** Checks the nodes of a graph; returns their number. */
  private checkedNodes(graph: number): number {
    const { out } = this;
    out.setU64(0, 0);
    this.do('cuGraphGetNodes', graph, 0, out.address);
    const count = out.u64(0);
    const nodes = new NativeMemory(this.koffi, Math.max(8, 8 * count));
    this.do('cuGraphGetNodes', graph, nodes.address, out.address);
    let working = 0;
    for (let i = 0; i < count; i++) {
      const node = nodes.u64(8 * i);
      this.do('cuGraphNodeGetType', node, out.address);
      const type = out.i32[0]!;
      if (!REPEATABLE.includes(type)) throw refused(`it has a node of type ${type}`);
      if (type === MEMCPY_NODE) this.checkCopy(node);
      if (WORKING.includes(type)) working++;
    }
    // Work of the processor is not in the graph.
    if (working === 0) throw refused('nothing of it is work of the GPU');
    return count;
  }

  /**
   * Refuses copies from or to memory of the host, which may be freed or have other contents at the
   * next launch.
   */
  private checkCopy(node: number): void {
    const params = new NativeMemory(this.koffi, 256);
    this.do('cuGraphMemcpyNodeGetParams', node, params.address);
    for (const { type, host, device } of SIDES) {
      const given = params.i32[type >> 2]!;
      const found =
        given === UNIFIED_ADDRESS ? this.typeAt(params.u64(device) || params.u64(host)) : given;
      if (found !== DEVICE_MEMORY) throw refused('it copies from or to memory of the host');
    }
  }

  private typeAt(address: number): number {
    const { out } = this;
    out.setU64(0, 0);
    // An address that the driver does not have is one of the host.
    return this.calls.cuPointerGetAttribute(out.address, MEMORY_TYPE, address) === 0
      ? out.i32[0]!
      : HOST_MEMORY;
  }

  private do(name: DriverFunction, ...args: unknown[]): void {
    const result = this.calls[name](...args);
    if (result !== 0) throw refused(`${name} gave CUresult ${result}`);
  }

  private give(name: DriverFunction, ...args: unknown[]): number {
    this.out.setU64(0, 0);
    this.do(name, this.out.address, ...args);
    return this.out.u64(0);
  }
}

function refused(why: string): Refused {
  return new Refused({ reason: 'unsupported', message: `a run cannot be recorded: ${why}` });
}
