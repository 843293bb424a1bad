/** What an engine is: how it carries an operation out, and what of a description it takes. */
import type { CoreDevice } from '../core/index.js';
import type { Work } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import type { Channels, Image, ImageName, NewTensor } from './image.js';

/** `own`: our kernels. `npp`: NVIDIA's NPP, where it is installed. */
export type EngineName = 'own' | 'npp';

/** Whether an engine can be used on a device. */
export interface EngineInfo {
  readonly name: EngineName;
  readonly available: boolean;
  /** The library's version, where it has one of its own. */
  readonly version?: string;
  /** Where it is not available: why, and what to do. */
  readonly reason?: string;
}

/** What every operation on images takes. */
export interface EngineOptions {
  /** Who carries the operation out. Default: {@link getDefaultEngine}, `own` unless it was set. */
  readonly engine?: EngineName;
}

/** What an operation is to do, once its arguments are known to be right. */
export interface Description<P> {
  /** What is read. The first one's dtype and channels say whether an engine has the operation. */
  readonly images: readonly Image[];
  /** What is written: tensors that were given, or what is to be allocated. */
  readonly results: readonly (KernelTensor | NewTensor)[];
  readonly parameters: P;
}

/** A description whose results are there. */
export interface Task<P> extends Description<P> {
  readonly results: readonly KernelTensor[];
}

/** How an engine carries out one operation: a row of its table. */
export interface Carrier<P> {
  /** Numbers of channels that it takes, for each dtype of the first image. Default: all of them. */
  readonly takes?: Partial<Readonly<Record<ImageName, readonly Channels[]>>>;
  /**
   * What of the description it does not have, though dtype and channels are right: 'no filter
   * lanczos3'. Undefined where it can.
   */
  readonly lacks?: (description: Description<P>) => string | undefined;
  /**
   * Adds what is to be queued. Pixels of images and results are contiguous in rows; pitches are
   * any.
   */
  readonly queue: (work: Work, task: Task<P>) => void;
}

/** An engine beside our own kernels. */
export interface Engine {
  /** Its rows, by the operation's name. */
  readonly carriers: Readonly<Record<string, Carrier<never> | undefined>>;
  /** Whether it can be used on the device. Never rejects. */
  look(device: CoreDevice): Promise<EngineInfo>;
}

/** An operation: its name, and how our kernels carry it out. */
export interface ImageOperation<P> {
  readonly name: string;
  readonly own: Carrier<P>;
}
