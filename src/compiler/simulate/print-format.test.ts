import { expect, test } from 'vitest';
import { formatPrint } from './print-format.js';

// Each expectation is what glibc's printf writes.
test.each<[string, (number | bigint)[], string]>([
  ['plain %% text', [], 'plain % text'],
  ['%d %i %u', [-5, 6, -1], '-5 6 4294967295'],
  ['[%5d|%-5d|%05d|%+d|% d]', [42, 42, 42, 42, 42], '[   42|42   |00042|+42| 42]'],
  ['%.3d %.0d|%8.3d', [7, 0, 7], '007 |     007'],
  ['%x %X %#x %o %#o', [255, 255, 255, 8, 8], 'ff FF 0xff 10 010'],
  ['%lld %llu %lx', [-1n, -1n, 0x123456789abcn], '-1 18446744073709551615 123456789abc'],
  ['%c%c', [72, 105], 'Hi'],
  ['%f %.2f %.0f %#.0f', [3.14159, 2.005, 2.5, 2.5], '3.141590 2.00 2 2.'],
  [
    '%10.3f|%-10.3f|%010.3f|%+.1f',
    [-1.5, -1.5, -1.5, 1.25],
    '    -1.500|-1.500    |-00001.500|+1.2',
  ],
  ['%e %.2E %.0e', [12345.678, 0.00012, 5], '1.234568e+04 1.20E-04 5e+00'],
  ['%.1e %.2e', [9.96, 9.996e-8], '1.0e+01 1.00e-07'],
  ['%g %g %g %g %g', [100000, 1000000, 0.0001, 0.00001, 0], '100000 1e+06 0.0001 1e-05 0'],
  ['%.3g %#g %G', [1234.5, 1, 1e-10], '1.23e+03 1.00000 1E-10'],
  [
    '%f %F %e %5.1f|%-6f|%06f',
    [Infinity, -Infinity, NaN, Infinity, NaN, Infinity],
    'inf -INF nan   inf|nan   |   inf',
  ],
  ['%f', [-0], '-0.000000'],
  ['%f', [1e22], '10000000000000000000000.000000'],
  ['%.20f', [0.1], '0.10000000000000000555'],
  ['%g', [5e-324], '4.94066e-324'],
  ['%a %a %.1a %a', [1, 0.1, 1.99, 0], '0x1p+0 0x1.999999999999ap-4 0x2.0p+0 0x0p+0'],
  ['%d %f', [1], '1 %f'],
])('%s', (format, values, expected) => {
  expect(formatPrint(format, values)).toBe(expected);
});

test.each(['f', 'e', 'g', 'a', 'd', 'x'])(
  'a width or a precision that no program needs counts as 4096: %%%s',
  (conversion) => {
    for (const digits of ['4097', '1000000000', '9'.repeat(400)]) {
      expect(formatPrint(`%.${digits}${conversion}`, [7])).toBe(
        formatPrint(`%.4096${conversion}`, [7]),
      );
      expect(formatPrint(`%${digits}${conversion}`, [7])).toBe(
        formatPrint(`%4096${conversion}`, [7]),
      );
    }
  },
);
