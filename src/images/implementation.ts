/** Types of engines and of their implementations of operations. */
import type { CoreDevice } from '../core/index.js';
import type { Work } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import type { Channels, Image, ImageName, NewTensor } from './image.js';

/** `own` is our kernels, `npp` NVIDIA's NPP, where it is installed. */
export type EngineName = 'own' | 'npp';

/** Whether an engine can be used on a device. */
export interface EngineInfo {
  readonly name: EngineName;
  readonly available: boolean;
  /** The library's version; `own` has none. */
  readonly version?: string;
  /** Why the engine is not available, and what to do. */
  readonly reason?: string;
}

/** Options of every operation on images. */
export interface EngineOptions {
  /** The engine. Default: {@link getDefaultEngine}, which is `own` unless it was set. */
  readonly engine?: EngineName;
}

/** The work of an operation, after its arguments were checked. */
export interface Description<P> {
  /** The images that are read. Engines have operations by dtype and channels of the first one. */
  readonly images: readonly Image[];
  /** The results: tensors that were passed, or descriptions of tensors to allocate. */
  readonly results: readonly (KernelTensor | NewTensor)[];
  readonly parameters: P;
}

/** A description whose results are allocated. */
export interface Task<P> extends Description<P> {
  readonly results: readonly KernelTensor[];
}

/** An engine's implementation of one operation: a row of its table. */
export interface Implementation<P> {
  /** Numbers of channels that it takes, for each dtype of the first image. Default: all. */
  readonly takes?: Partial<Readonly<Record<ImageName, readonly Channels[]>>>;
  /**
   * Gives what it lacks for a description whose dtype and channels it takes, such as 'no filter
   * lanczos3'; undefined where it lacks nothing.
   */
  readonly lacks?: (description: Description<P>) => string | undefined;
  /** Adds the steps of the work. Rows of images and results are contiguous, with any pitches. */
  readonly queue: (work: Work, task: Task<P>) => void;
}

/** An engine other than our kernels. */
export interface Engine {
  /** Its implementations, by the operation's name. */
  readonly implementations: Readonly<Record<string, Implementation<never> | undefined>>;
  /** Whether it is available on the device. Never rejects. */
  infoFor(device: CoreDevice): Promise<EngineInfo>;
}

/** An operation: its name, and its implementation by our kernels. */
export interface ImageOperation<P> {
  readonly name: string;
  readonly own: Implementation<P>;
}
