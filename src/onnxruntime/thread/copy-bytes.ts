/** Copies between addresses of the process. */
import type { Koffi } from '../../native/koffi.js';

/** The library that has memcpy. */
const C_LIBRARIES: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  linux: 'libc.so.6',
  darwin: '/usr/lib/libSystem.B.dylib',
  win32: 'msvcrt.dll',
};

let memcpy: ((to: number, from: number, bytes: number) => unknown) | undefined;

export function copyBytes(koffi: Koffi, to: number, from: number, bytes: number): void {
  memcpy ??= koffi
    .load(C_LIBRARIES[process.platform] ?? 'libc.so')
    .func('uintptr_t memcpy(uintptr_t to, uintptr_t from, size_t bytes)') as (
    to: number,
    from: number,
    bytes: number,
  ) => unknown;
  memcpy(to, from, bytes);
}
