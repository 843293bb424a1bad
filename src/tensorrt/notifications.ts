/**
 * Passes on TensorRT's notifications: messages to a diagnostics channel, progress and layers' times
 * to their callbacks.
 */
import { channel } from 'node:diagnostics_channel';

import type { Notification, Severity } from './thread/messages.js';

/** A message of TensorRT's logger. */
export interface TensorRTLogMessage {
  readonly severity: Severity;
  readonly message: string;
}

/**
 * The channel `async-cuda:tensorrt`: it publishes every message of TensorRT's logger up to severity
 * `info`, as {@link TensorRTLogMessage}.
 */
const log = channel('async-cuda:tensorrt');

type Progress = (phase: string, step: number, steps: number) => void;
type Layer = (layer: string, milliseconds: number) => void;

const monitors = new Map<number, Progress>();
const profilers = new Map<number, Layer>();
let next = 1;

/** Registers a callback for the progress of a build; returns its number. */
export function onProgress(callback: Progress): number {
  monitors.set(next, callback);
  return next++;
}

/** Registers a callback for the times of layers; returns its number. */
export function onLayers(callback: Layer): number {
  profilers.set(next, callback);
  return next++;
}

export function forget(id: number): void {
  monitors.delete(id);
  profilers.delete(id);
}

export function notify(message: Notification): void {
  switch (message.kind) {
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
