/** What the JavaScript thread and TensorRT's threads say to one another. */
import type { Generation } from './generations.js';
import type { RefusalDetails, RefusalKind } from './refused.js';

export type Role = 'caller' | 'listener';

/** How a thread starts. */
export interface TensorRTThreadStart {
  readonly role: Role;
  readonly koffiPath: string | undefined;
  /** What TensorRT says during a call is in: of callers. */
  readonly said?: SharedArrayBuffer;
  /** Not zero while a call of TensorRT goes on. */
  readonly busy: SharedArrayBuffer;
}

export interface Question {
  readonly id: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | {
      readonly id: number;
      readonly refusal: {
        readonly kind: RefusalKind;
        readonly message: string;
        readonly details: RefusalDetails;
      };
    };

/** ILogger::Severity, in its order. */
export const SEVERITIES = ['internalError', 'error', 'warning', 'info', 'verbose'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** What a listener hears of by itself. */
export type Heard =
  | { readonly heard: 'log'; readonly severity: Severity; readonly message: string }
  | {
      readonly heard: 'progress';
      readonly monitor: number;
      readonly phase: string;
      readonly step: number;
      readonly steps: number;
    }
  | {
      readonly heard: 'layer';
      readonly profiler: number;
      readonly layer: string;
      readonly milliseconds: number;
    };

/** Where TensorRT looks for what it calls. */
export type Callbacks = Generation['callbacks'];
