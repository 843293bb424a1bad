/**
 * The errors of the embedded device's calls: always a {@link DriverError} with the result code that
 * NVIDIA's driver returns for the same mistake, and one sentence that describes what was wrong with
 * this call.
 */
import { DriverError } from '../error.js';
import type { CheckReport } from '../../ground/check-report.js';
import { CUresult } from '../../ground/result.js';

export function fail(
  call: string,
  result: CUresult,
  detail?: string,
  reports?: readonly CheckReport[],
): never {
  throw new DriverError(call, result, {
    ...(detail === undefined ? {} : { detail }),
    ...(reports === undefined ? {} : { reports }),
  });
}

export function invalidValue(call: string, detail: string): never {
  fail(call, CUresult.CUDA_ERROR_INVALID_VALUE, detail);
}

export function invalidHandle(call: string, kind: string, handle: number): never {
  fail(call, CUresult.CUDA_ERROR_INVALID_HANDLE, `${handle} is not a live ${kind}`);
}

/** Checks a count or size: a non-negative integer that a double represents exactly. */
export function checkSize(call: string, name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0)
    invalidValue(call, `${name} is ${value}; it must be a non-negative integer`);
}

export function hex(address: number | bigint): string {
  return `0x${address.toString(16)}`;
}
