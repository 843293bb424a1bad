import { expect, test } from 'vitest';

import { showDiagnostic } from './compile-error.js';
import { readDiagnostics } from './diagnostics.js';

const SOURCE = 'extern "C" __global__ void f(float* y) {\n\t  int i = 3;\tfloat z = q;\n}\n';
const textOf = (file: string): string | undefined => (file === 'source.cu' ? SOURCE : undefined);

/** As NVRTC 13.5 prints it. */
const WITH_LINES = `source.cu(2): error: identifier "q" is undefined
  \t  int i = 3;\tfloat z = q;
  \t            \t          ^

source.cu(2): warning #177-D: variable "i" was declared but never referenced
  \t  int i = 3;\tfloat z = q;
  \t      ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

1 error detected in the compilation of "source.cu".
`;
/** As NVRTC 11.8 and 12.0 do. */
const WITHOUT_LINES =
  'source.cu(2): error: identifier "q" is undefined\n\nsource.cu(2): warning #177-D: ' +
  'variable "i" was declared but never referenced\n\n1 error detected in the compilation of ' +
  '"source.cu".\n';

test.each([
  ['of newer versions, with lines', WITH_LINES, 8],
  ['of older versions, without', WITHOUT_LINES, undefined],
])('logs %s', (_, log, columnOfI) => {
  expect(readDiagnostics(log, textOf)).toEqual([
    {
      severity: 'error',
      message: 'identifier "q" is undefined',
      number: undefined,
      file: 'source.cu',
      line: 2,
      column: 25,
      code: '\t  int i = 3;\tfloat z = q;',
    },
    // The line has more than one i.
    {
      severity: 'warning',
      message: 'variable "i" was declared but never referenced',
      number: 177,
      file: 'source.cu',
      line: 2,
      column: columnOfI,
      code: '\t  int i = 3;\tfloat z = q;',
    },
  ]);
});

test('the caret stands where the code does', () => {
  const [error] = readDiagnostics(WITH_LINES, textOf);
  expect(showDiagnostic(error!)).toBe(
    'source.cu:2:25: error: identifier "q" is undefined\n  2 | int i = 3;\tfloat z = q;\n    ' +
      '|           \t          ^',
  );
});

test('a message that goes on, and one without a place', () => {
  const log = `a.h(7): error: no instance of function template "f" matches the argument list
            argument types are: (int)
          detected during instantiation of "void g<T>(T) [with T=int]" at line 9 of source.cu

nvrtc: error: out of patience
error: nothing works
`;
  expect(
    readDiagnostics(log, textOf).map(({ message, file, line }) => [message, file, line]),
  ).toEqual([
    [
      'no instance of function template "f" matches the argument list argument types are: ' +
        '(int) detected during instantiation of "void g<T>(T) [with T=int]" at line 9 of ' +
        'source.cu',
      'a.h',
      7,
    ],
    ['nothing works', undefined, undefined],
  ]);
});

test('catastrophic errors are errors', () => {
  const log =
    'source.cu(1): catastrophic error: cannot open source file "nothere.h"\n\n1 catastrophic ' +
    'error detected in the compilation of "source.cu".\nCompilation terminated.\n';
  expect(readDiagnostics(log, textOf).map(({ severity, message }) => [severity, message])).toEqual([
    ['error', 'cannot open source file "nothere.h"'],
  ]);
});

test('an empty log has none', () => {
  expect(readDiagnostics('', textOf)).toEqual([]);
});
