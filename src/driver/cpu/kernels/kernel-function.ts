/**
 * A kernel of a module in a context: its entry point, its limits, and the values that are computed
 * once for all launches of the same shape.
 */
import type { WasmKernel } from '../../../ptx/index.js';
import { CUfunction_attribute as A } from '../../attributes.js';
import {
  MAX_THREADS_PER_BLOCK,
  SHARED_PER_BLOCK,
  SHARED_PER_BLOCK_OPTIN,
} from '../device-attributes.js';
import { layOutSlot } from './block-slots.js';
import type { SlotLayout } from './block-slots.js';
import { clusterShape } from './cluster.js';
import type { ClusterShape } from './cluster.js';
import { KernelCodes } from './kernel-code.js';
import type { KernelCode } from './kernel-code.js';
import type { CpuModule } from './module.js';
import type { KernelContext } from './kernel-context.js';

export class KernelFunction {
  readonly handle: number;
  readonly module: CpuModule;
  readonly context: KernelContext;
  readonly kernel: WasmKernel;
  readonly codes: KernelCodes;
  readonly maxThreads: number;
  readonly paramWords: number;
  /** The largest dynamic shared memory of a launch, in bytes. */
  maxDynamicShared: number;
  /** The clusters of every launch. */
  requiredCluster: ClusterShape | undefined;
  /** Attributes that are stored and have no effect here. */
  private readonly hints = new Map<number, number>();
  /** Whether a grid of it has run to its end. */
  hasRun = false;
  /** Number of blocks that run between two readings of the clock. */
  stride = 1;
  /**
   * How long one thread of its last grid took, in milliseconds, among grids long enough to measure;
   * 0 before the first.
   */
  threadMs = 0;
  private layout: SlotLayout | undefined = undefined;
  private layoutCode: KernelCode | undefined = undefined;
  private layoutThreads = -1;
  private layoutShared = -1;

  constructor(handle: number, module: CpuModule, kernel: WasmKernel, code: KernelCode) {
    this.handle = handle;
    this.module = module;
    this.context = module.context;
    this.kernel = kernel;
    this.codes = new KernelCodes(module.context, kernel, code);
    const required = kernel.requiredBlock;
    const declared =
      required === undefined ? kernel.maxThreads : required[0] * required[1] * required[2];
    this.maxThreads =
      declared > 0 ? Math.min(declared, MAX_THREADS_PER_BLOCK) : MAX_THREADS_PER_BLOCK;
    const { required: cluster } = kernel.cluster;
    this.requiredCluster = cluster === undefined ? undefined : clusterShape(cluster);
    this.paramWords = Math.ceil(kernel.paramBytes / 4);
    this.maxDynamicShared = Math.max(0, SHARED_PER_BLOCK - kernel.sharedBytes);
  }

  get name(): string {
    return this.kernel.name;
  }

  /**
   * Returns the layout of a block's slot. The last one is cached, since loops launch the same shape
   * repeatedly.
   */
  slotLayout(code: KernelCode, threads: number, dynamicShared: number): SlotLayout {
    if (
      code === this.layoutCode &&
      threads === this.layoutThreads &&
      dynamicShared === this.layoutShared
    )
      return this.layout!;
    const { kernel } = this;
    this.layoutCode = code;
    this.layoutThreads = threads;
    this.layoutShared = dynamicShared;
    return (this.layout = layOutSlot(
      this.paramWords * 4,
      (kernel.check?.sharedBytes ?? kernel.sharedBytes) + dynamicShared,
      kernel.sharedAlign,
      code.blockBytes(threads),
    ));
  }

  /** Returns an attribute; undefined for a number that is none. */
  attribute(attribute: number): number | undefined {
    const { kernel, module } = this;
    switch (attribute) {
      case A.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return this.maxThreads;
      case A.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        return kernel.sharedBytes;
      case A.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        return module.constBytes;
      case A.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        return kernel.localBytes;
      // PTX registers are virtual; a GPU's assembler gives a kernel 255 at most.
      case A.CU_FUNC_ATTRIBUTE_NUM_REGS:
        return Math.min(kernel.registers, 255);
      case A.CU_FUNC_ATTRIBUTE_PTX_VERSION:
        return module.ptxVersion;
      case A.CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        return 80;
      case A.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return this.maxDynamicShared;
      case A.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return this.hints.get(attribute) ?? -1;
      case A.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        return kernel.cluster.explicit ? 1 : 0;
      case A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      case A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      case A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        return (
          kernel.cluster.required?.[attribute - A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] ??
          this.hints.get(attribute) ??
          0
        );
      case A.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      case A.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      case A.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return this.hints.get(attribute) ?? 0;
      default:
        return undefined;
    }
  }

  /**
   * Applies the attributes of clusters, where the kernel declares none; they apply once all three
   * are set.
   */
  private setClusters(): void {
    const [x = 0, y = 0, z = 0] = [
      A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
      A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
      A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
    ].map((attribute) => this.hints.get(attribute));
    this.requiredCluster = x > 0 && y > 0 && z > 0 ? clusterShape([x, y, z]) : undefined;
  }

  /** Whether a launch may have clusters of a size that not every GPU with clusters supports. */
  get allowsLargeClusters(): boolean {
    return this.hints.get(A.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) === 1;
  }

  /** Sets an attribute. Returns what is wrong with the value, or undefined once it is set. */
  setAttribute(attribute: number, value: number): string | undefined {
    switch (attribute) {
      case A.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
        const most = SHARED_PER_BLOCK_OPTIN - this.kernel.sharedBytes;
        if (!(value >= 0 && value <= most))
          return `dynamic shared memory is ${value} bytes; ${this.name} can have 0 to ${most}`;
        this.maxDynamicShared = value;
        return undefined;
      }
      case A.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (!(value >= -1 && value <= 100))
          return `the carveout is ${value}; it must be -1 to 100 percent`;
        this.hints.set(attribute, value);
        return undefined;
      case A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      case A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      case A.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (!Number.isInteger(value) || value < 0)
          return `a cluster's dimension is ${value} blocks; it must be an integer, 0 for none`;
        this.hints.set(attribute, value);
        this.setClusters();
        return undefined;
      case A.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      case A.CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        this.hints.set(attribute, value);
        return undefined;
      default:
        return `attribute ${attribute} cannot be set`;
    }
  }
}
