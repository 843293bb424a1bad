/**
 * The library as its users get it: the built package, not the sources that `async-cuda/core` names inside this project.
 * `npm run bench` builds it first.
 */
import type * as Core from 'async-cuda/core';

const built = new URL('../dist/core.js', import.meta.url);

export const core = (await import(built.href).catch((cause: unknown) => {
  throw new Error('bench: dist/core.js cannot be loaded; build it with npm run build:js', { cause });
})) as typeof Core;

export type { Device, DeviceBuffer, DeviceName, Kernel, Module, Stream } from 'async-cuda/core';
