/**
 * Checks the compiler's result for a text: a module that an engine accepts, or a PtxError with a
 * place.
 */
import { PtxError, compilePtx } from 'async-cuda/ptx';
import type { WasmModule } from 'async-cuda/ptx';

/**
 * An input of some ten kilobytes that takes longer than this counts as a hang, even on a busy
 * machine.
 */
export const SLOWEST_MS = 5000;

export interface Verdict {
  /** The problem; undefined where there is none. */
  complaint?: string;
  module?: WasmModule;
  ms: number;
}

function misplaced(error: PtxError, lines: number): string | undefined {
  if (!Number.isInteger(error.line) || error.line < 1 || error.line > lines)
    return `line ${error.line} of ${lines}: ${error.message}`;
  if (!Number.isInteger(error.column) || error.column < 1)
    return `column ${error.column}: ${error.message}`;
  if (!error.message.includes(`${error.line}:${error.column}`))
    return `the message has no place: ${error.message}`;
  return undefined;
}

export function judge(text: string): Verdict {
  // Processor time is measured, since other processes may run meanwhile.
  const start = process.cpuUsage();
  const lines = text.split('\n').length;
  let complaint: string | undefined;
  let module: WasmModule | undefined;
  try {
    module = compilePtx(text);
  } catch (error) {
    if (!(error instanceof PtxError))
      complaint = error instanceof Error ? (error.stack ?? error.message) : String(error);
    else complaint = misplaced(error, lines);
  }
  if (module) {
    if (!WebAssembly.validate(module.wasm as Uint8Array<ArrayBuffer>))
      complaint = 'the module is not valid WebAssembly';
    for (const { error } of module.failures) complaint ??= misplaced(error, lines);
  }
  const { user, system } = process.cpuUsage(start);
  const ms = (user + system) / 1000;
  if (ms > SLOWEST_MS) complaint ??= `took ${ms.toFixed(0)} ms for ${text.length} characters`;
  return {
    ms,
    ...(complaint === undefined ? {} : { complaint }),
    ...(module === undefined ? {} : { module }),
  };
}
