/** Large pages are asked for where there can be some, and for nothing else. */
import { existsSync, readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { adviseHugePages } from './huge-pages.js';
import { koffiPath, loadKoffi } from './koffi.js';

const MIB = 1 << 20;

/** The flags of the mapping that holds an address: `hg` says that large pages are asked for. */
function flagsAt(address: number): string[] {
  for (const mapping of readFileSync('/proc/self/smaps', 'latin1').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const [begin = 0, end = 0] = /^[0-9a-f]+-[0-9a-f]+/.exec(mapping)?.[0].split('-').map((digits) => parseInt(digits, 16)) ?? [];
    if (address >= begin && address < end) return /^VmFlags: (.*)$/m.exec(mapping)?.[1]?.trim().split(' ') ?? [];
  }
  throw new Error('the address is not mapped');
}

const possible = existsSync('/sys/kernel/mm/transparent_hugepage/enabled') && existsSync('/proc/self/smaps');

test.runIf(possible)('large pages are asked for between the ends of a buffer, and the buffer stays as it is', () => {
  const koffi = loadKoffi(koffiPath());
  const bytes = new Uint8Array(new SharedArrayBuffer(64 * MIB));
  bytes[0] = 1;
  bytes[32 * MIB] = 2;
  const address = Number(koffi.address(bytes));
  expect(flagsAt(address + 32 * MIB)).not.toContain('hg');
  adviseHugePages(koffi, address, bytes.length);
  expect(flagsAt(address + 32 * MIB)).toContain('hg');
  expect([bytes[0], bytes[1], bytes[32 * MIB]]).toEqual([1, 0, 2]);
});

test.runIf(possible)('a buffer without a whole large page in it is left alone', () => {
  const koffi = loadKoffi(koffiPath());
  const bytes = new Uint8Array(new SharedArrayBuffer(MIB));
  const address = Number(koffi.address(bytes));
  const before = flagsAt(address);
  adviseHugePages(koffi, address, bytes.length);
  expect(flagsAt(address)).toEqual(before);
});
