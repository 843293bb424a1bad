/**
 * Where what TensorRT says by itself goes: to a diagnostics channel, and to whoever asked for
 * progress or layers' times.
 */
import { channel } from 'node:diagnostics_channel';

import type { Heard, Severity } from './thread/messages.js';

/** A message of TensorRT's logger. */
export interface TensorRTLogMessage {
  readonly severity: Severity;
  readonly message: string;
}

/**
 * `async-cuda:tensorrt`: every message of TensorRT's logger up to severity `info`, as
 * {@link TensorRTLogMessage}.
 */
const log = channel('async-cuda:tensorrt');

type Progress = (phase: string, step: number, steps: number) => void;
type Layer = (layer: string, milliseconds: number) => void;

const monitors = new Map<number, Progress>();
const profilers = new Map<number, Layer>();
let next = 1;

export function onProgress(told: Progress): number {
  monitors.set(next, told);
  return next++;
}

export function onLayers(told: Layer): number {
  profilers.set(next, told);
  return next++;
}

export function forget(id: number): void {
  monitors.delete(id);
  profilers.delete(id);
}

export function hear(message: Heard): void {
  switch (message.heard) {
    case 'log':
      if (log.hasSubscribers)
        log.publish({
          severity: message.severity,
          message: message.message,
        } satisfies TensorRTLogMessage);
      return;
    case 'progress':
      monitors.get(message.monitor)?.(message.phase, message.step, message.steps);
      return;
    case 'layer':
      profilers.get(message.profiler)?.(message.layer, message.milliseconds);
  }
}
