import { expect, test } from 'vitest';

import { checkDType, checkOptions, invalid } from './arguments.js';
import { f32 } from './dtype.js';

test('a misspelled or shortened option is an error that suggests the right one', () => {
  expect(() => {
    checkOptions('options', { shared: 16 }, ['grid', 'sharedBytes']);
  }).toThrow("there is no option 'shared'. Did you mean 'sharedBytes'?");
  expect(() => {
    checkOptions('options', { gird: 1 }, ['grid', 'sharedBytes']);
  }).toThrow("Did you mean 'grid'?");
  expect(() => {
    checkOptions('options', { s: 1 }, ['grid', 'sharedBytes']);
  }).toThrow('Options are grid, sharedBytes.');
});

test('an object with the name of the expected class comes from another copy of the package', () => {
  class Tensor {
    size = 3;
  }
  expect(invalid('x', 'a Tensor', new Tensor(), 'Write device.tensor(…).').message).toBe(
    'x: expected a Tensor, got Tensor { size: 3 }. It comes from another copy of async-cuda ' +
      'in this program, whose classes differ. `npm ls async-cuda` shows the copies: let ' +
      'all packages use one, and import or require it in one way.',
  );
  expect(invalid('x', 'a DeviceBuffer or a Tensor', new Tensor()).message).toContain(
    'another copy',
  );
  for (const [expected, value] of [
    ['a Device', new Tensor()],
    ['a Tensor of f32', new Tensor()],
    ['a Tensor', 'Tensor'],
    ['a Tensor', {}],
  ] as const) {
    expect(invalid('x', expected, value, 'Fix it.').message).toMatch(/ Fix it\.$/);
  }
});

test('a dtype of another copy of the package is refused', () => {
  expect(() => {
    checkDType({ ...f32 });
  }).toThrow(/got \{ name: 'f32'.* It comes from another copy of async-cuda/);
  for (const other of [{ name: 'f31' }, { name: 4 }, 'f32', undefined, null, 4]) {
    expect(() => {
      checkDType(other);
    }).toThrow('dtype: expected one of u8');
    expect(() => {
      checkDType(other);
    }).not.toThrow('another copy');
  }
});
