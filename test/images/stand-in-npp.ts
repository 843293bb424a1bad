/**
 * A stand-in for NPP: every function of the tables records its arguments as C received them.
 * Structures are declared in C here, so that their layout in the tables is tested.
 */
import type { ArgumentType } from '../../src/core/index.js';
import { CONTEXT, NPP_FUNCTIONS } from '../../src/images/nvidia/functions.js';
import type { NppFile } from '../../src/images/nvidia/functions.js';
import { StandInLibrary } from '../core/stand-in-library.js';

const STRUCTURES = `
typedef struct { int a[2]; } Two;
typedef struct { int a[4]; } Four;
typedef struct {
  void *hStream;
  int nCudaDeviceId, nMultiProcessorCount, nMaxThreadsPerMultiProcessor, nMaxThreadsPerBlock;
  size_t nSharedMemPerBlock;
  int nCudaDevAttrComputeCapabilityMajor, nCudaDevAttrComputeCapabilityMinor;
  unsigned int nStreamFlags;
  int nReserved0;
} Context;
API const int *nppGetLibVersion(void) { static const int version[3] = {VERSION}; return version; }
static void hex(char *to, const unsigned char *from, int bytes) {
  for (int i = 0; i < bytes; i++) sprintf(to + 2 * i, "%02x", from[i]);
  to[2 * bytes] = 0;
}
static void list(char *to, const unsigned long long *from, int count) {
  *to = 0;
  for (int i = 0; i < count; i++) to += sprintf(to, "%s%llu", i ? "," : "", from[i]);
}
`;

function parameter(
  type: ArgumentType,
  i: number,
): { declaration: string; format: string; values: string; before?: string } {
  const name = `p${i}`;
  if (type === CONTEXT) {
    const fields = [
      'nCudaDeviceId',
      'nMultiProcessorCount',
      'nMaxThreadsPerMultiProcessor',
      'nMaxThreadsPerBlock',
      'nSharedMemPerBlock',
      'nCudaDevAttrComputeCapabilityMajor',
      'nCudaDevAttrComputeCapabilityMinor',
      'nStreamFlags',
      'nReserved0',
    ];
    return {
      declaration: `Context ${name}`,
      format: `stream=%llu ${fields.map(() => '%lld').join(':')}`,
      values:
        `(unsigned long long)${name}.hStream, ` +
        `${fields.map((field) => `(long long)${name}.${field}`).join(', ')}`,
    };
  }
  if (type === 'f32') return { declaration: `float ${name}`, format: '%.9g', values: name };
  if (type === 'f64') return { declaration: `double ${name}`, format: '%.17g', values: name };
  if (type === 'i32' || type === 'u32')
    return { declaration: `int ${name}`, format: '%d', values: name };
  if (typeof type === 'string')
    return { declaration: `void *${name}`, format: '@%llu', values: `(unsigned long long)${name}` };
  if ('host' in type)
    return {
      declaration: `void *${name}`,
      format: '%s',
      values: `t${i}`,
      before: `char t${i}[${2 * type.host + 1}]; hex(t${i}, ${name}, ${type.host});`,
    };
  if ('pointers' in type)
    return {
      declaration: `void *${name}`,
      format: '[%s]',
      values: `t${i}`,
      before: `char t${i}[${22 * type.count}]; list(t${i}, ${name}, ${type.count});`,
    };
  const count = Object.keys(type.struct).length;
  return {
    declaration: `${count === 2 ? 'Two' : 'Four'} ${name}`,
    format: Array.from({ length: count }, () => '%d').join('x'),
    values: Array.from({ length: count }, (_, k) => `${name}.a[${k}]`).join(', '),
  };
}

/** @param version major, minor, build */
export function standInNpp(version: readonly [number, number, number]): {
  library: StandInLibrary;
  files: Record<NppFile, string>;
} {
  const functions = Object.values(NPP_FUNCTIONS)
    .flatMap((rows) => Object.entries(rows))
    .filter(([name]) => name !== 'nppGetLibVersion')
    .map(([name, { args }]) => {
      const parameters = args.map(parameter);
      return (
        `API int ${name}(${parameters.map(({ declaration }) => declaration).join(', ')}) { ` +
        `${parameters.map(({ before = '' }) => before).join(' ')} note("${name} ` +
        `${parameters.map(({ format }) => format).join(' ')}", ` +
        `${parameters.map(({ values }) => values).join(', ')}); return answer(); }`
      );
    });
  const library = new StandInLibrary(
    'npp',
    [STRUCTURES.replace('VERSION', version.join(', ')), ...functions].join('\n'),
  );
  return {
    library,
    files: Object.fromEntries(
      Object.keys(NPP_FUNCTIONS).map((file) => [file, library.path]),
    ) as Record<NppFile, string>,
  };
}
