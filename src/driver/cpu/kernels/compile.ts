/**
 * The compiler's type for the device. It is in a file of its own, because public types refer to it,
 * and must not refer to WebAssembly's types, which a program without the DOM's types does not have.
 */
import type { WasmModule } from '../../../ptx/index.js';

export type Compile = (
  source: string,
  options?: { fileName?: string; check?: boolean; ordered?: boolean },
) => WasmModule;
