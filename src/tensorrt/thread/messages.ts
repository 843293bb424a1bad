/** The messages between the JavaScript thread and TensorRT's threads. */
import type { Generation } from './generations.js';
import type { RefusalDetails, RefusalKind } from './refused.js';

export type Role = 'caller' | 'listener';

/** The start arguments of a thread. */
export interface TensorRTThreadStart {
  readonly role: Role;
  readonly koffiPath: string | undefined;
  /** For callers: collects TensorRT's error messages during a call. */
  readonly said?: SharedArrayBuffer;
  /** Not zero during a call of TensorRT. */
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

/** A notification that a listener sends without a request. */
export type Notification =
  | { readonly kind: 'log'; readonly severity: Severity; readonly message: string }
  | {
      readonly kind: 'progress';
      readonly monitor: number;
      readonly phase: string;
      readonly step: number;
      readonly steps: number;
    }
  | {
      readonly kind: 'layer';
      readonly profiler: number;
      readonly layer: string;
      readonly milliseconds: number;
    };

/** The places at which TensorRT finds the functions that it calls. */
export type Callbacks = Generation['callbacks'];
