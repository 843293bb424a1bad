import { expect, test } from 'vitest';
import { formatPrintf } from './printf.js';

type Value = number | bigint | { double: number } | { text: string };

/** Packs the arguments as a kernel does: numbers are 32 bits, bigints 64. */
function printf(format: string, ...values: Value[]): string {
  const view = new DataView(new ArrayBuffer(4096));
  const texts = new Map<number, string>();
  let at = 0;
  for (const value of values) {
    if (typeof value === 'number') {
      view.setInt32(at, value, true);
      at += 4;
      continue;
    }
    at = (at + 7) & ~7;
    if (typeof value === 'bigint') view.setBigInt64(at, value, true);
    else if ('double' in value) view.setFloat64(at, value.double, true);
    else {
      texts.set(1000 + at, value.text);
      view.setBigInt64(at, BigInt(1000 + at), true);
    }
    at += 8;
  }
  return formatPrintf(format, { view, text: (address) => texts.get(address)! }, 0);
}
const d = (double: number): Value => ({ double });

// Each expectation is the output of glibc's printf.
test.each<[string, Value[], string]>([
  ['plain %% text', [], 'plain % text'],
  ['%d %i %u', [-5, 6, -1], '-5 6 4294967295'],
  ['[%5d|%-5d|%05d|%+d|% d]', [42, 42, 42, 42, 42], '[   42|42   |00042|+42| 42]'],
  ['%.3d %.0d|%8.3d', [7, 0, 7], '007 |     007'],
  ['%x %X %#x %o %#o', [255, 255, 255, 8, 8], 'ff FF 0xff 10 010'],
  ['%hhd %hd %hhu', [200, 40000, 300], '-56 -25536 44'],
  ['%lld %llu %lx', [-1n, -1n, 0x123456789abcn], '-1 18446744073709551615 123456789abc'],
  ['%c%c', [72, 105], 'Hi'],
  [
    '%s|%8s|%-8s|%.2s',
    [{ text: 'abc' }, { text: 'abc' }, { text: 'abc' }, { text: 'abc' }],
    'abc|     abc|abc     |ab',
  ],
  ['%p', [0x1000n], '0x1000'],
  ['%8p', [0n], '   (nil)'],
  ['%f %.2f %.0f %#.0f', [d(3.14159), d(2.005), d(2.5), d(2.5)], '3.141590 2.00 2 2.'],
  [
    '%10.3f|%-10.3f|%010.3f|%+.1f',
    [d(-1.5), d(-1.5), d(-1.5), d(1.25)],
    '    -1.500|-1.500    |-00001.500|+1.2',
  ],
  ['%e %.2E %.0e', [d(12345.678), d(0.00012), d(5)], '1.234568e+04 1.20E-04 5e+00'],
  [
    '%g %g %g %g %g',
    [d(100000), d(1000000), d(0.0001), d(0.00001), d(0)],
    '100000 1e+06 0.0001 1e-05 0',
  ],
  ['%.3g %#g %G', [d(1234.5), d(1), d(1e-10)], '1.23e+03 1.00000 1E-10'],
  [
    '%f %F %e %5.1f|%-6f|%06f',
    [d(Infinity), d(-Infinity), d(NaN), d(Infinity), d(NaN), d(Infinity)],
    'inf -INF nan   inf|nan   |   inf',
  ],
  ['%f', [d(-0)], '-0.000000'],
  ['%f', [d(1e22)], '10000000000000000000000.000000'],
  ['%a %a %.1a %a', [d(1), d(0.1), d(1.99), d(0)], '0x1p+0 0x1.999999999999ap-4 0x2.0p+0 0x0p+0'],
  ['%*d|%-*d|%.*f', [6, 1, 4, 2, 3, d(1.5)], '     1|2   |1.500'],
  ['%d %f %d', [1, d(0.5), 2], '1 0.500000 2'],
])('%s', (format, values, expected) => {
  expect(printf(format, ...values)).toBe(expected);
});

test.each(['f', 'e', 'g', 'a', 'F', 'd', 'x', 's', 'c'])(
  'a width or a precision that no program needs counts as 4096: %%%s',
  (conversion) => {
    const value = (): Value =>
      'feagF'.includes(conversion) ? d(4 / 3) : conversion === 's' ? { text: 'abc' } : 7;
    for (const digits of ['4097', '1000000000', '9'.repeat(400)]) {
      expect(printf(`%.${digits}${conversion}`, value())).toBe(
        printf(`%.4096${conversion}`, value()),
      );
      expect(printf(`%${digits}${conversion}`, value())).toBe(
        printf(`%4096${conversion}`, value()),
      );
      expect(printf(`%0-${digits}${conversion}|`, value())).toBe(
        printf(`%-4096${conversion}|`, value()),
      );
    }
    expect(printf(`%*.*${conversion}`, 2 ** 31 - 1, 2 ** 31 - 1, value())).toBe(
      printf(`%4096.4096${conversion}`, value()),
    );
    expect(printf(`%*${conversion}|`, -(2 ** 31), value())).toBe(
      printf(`%-4096${conversion}|`, value()),
    );
  },
);

test('every digit of a double is written, and zeros after them', () => {
  expect(printf('%.1074f', d(5e-324))).toMatch(/^0\.0{323}494\d+5$/);
  expect(printf('%.2000f', d(0.5))).toBe(`0.5${'0'.repeat(1999)}`);
});

test('one call writes a megabyte at most', () => {
  expect(printf('%4000d'.repeat(400), ...Array.from({ length: 400 }, () => 1))).toHaveLength(
    2 ** 20,
  );
});

test('a directive of many zeros is read in time', () => {
  const before = performance.now();
  expect(printf(`%${'0'.repeat(100_000)}`)).toBe(`%${'0'.repeat(100_000)}`);
  expect(performance.now() - before).toBeLessThan(1000);
});
