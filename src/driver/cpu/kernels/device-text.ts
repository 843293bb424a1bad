/**
 * Texts in device memory, and printf on them. They are apart from the other functions of the host,
 * which need the whole device: these two run on every thread that runs kernels.
 */
import { formatPrintf } from './printf.js';

/**
 * Largest number of bytes of a text: one without a terminating zero would extend to the end of
 * memory.
 */
const MOST_BYTES = 1 << 20;

/** Returns the zero-terminated text at an address of device memory. */
export function deviceText(memory: WebAssembly.Memory, address: number): string {
  const start = address >>> 0;
  const bytes = new Uint8Array(memory.buffer).subarray(start, start + MOST_BYTES);
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(bytes.slice(0, end < 0 ? bytes.length : end));
}

/**
 * Returns the text that printf prints, and the number of its arguments, which vprintf returns on a
 * GPU.
 */
export function printf(
  memory: WebAssembly.Memory,
  format: number,
  args: number,
): { text: string; conversions: number } {
  const template = deviceText(memory, format);
  const text = formatPrintf(
    template,
    { view: new DataView(memory.buffer), text: (address) => deviceText(memory, address) },
    args,
  );
  return { text, conversions: [...template.matchAll(/%[^%]/g)].length };
}
