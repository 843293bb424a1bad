/**
 * A stand-in for the PTX compiler, for tests of the device alone: its "PTX" is a list of words,
 * each the name of one of the kernels below, assembled by hand to WebAssembly with the compiler's
 * calling convention. `$variable` words declare 64-byte variables, `!syntax` and `!unsupported`
 * fail as the compiler would, `!partly` leaves out a kernel 'hard'.
 */
import { CTX, STATUS } from '../../../ptx/index.js';
import { PtxError } from '../../../ptx/index.js';
import type { WasmKernel, WasmModule } from '../../../ptx/index.js';

const leb = (value: number): number[] => {
  const bytes: number[] = [];
  for (let rest = value | 0; ;) {
    const byte = rest & 0x7f;
    rest >>= 7;
    const last = (rest === 0 && (byte & 0x40) === 0) || (rest === -1 && (byte & 0x40) !== 0);
    bytes.push(last ? byte : byte | 0x80);
    if (last) return bytes;
  }
};
const uleb = (value: number): number[] => {
  const bytes: number[] = [];
  do {
    const byte = value & 0x7f;
    value >>>= 7;
    bytes.push(value === 0 ? byte : byte | 0x80);
  } while (value !== 0);
  return bytes;
};
const text = (s: string): number[] => [...uleb(s.length), ...new TextEncoder().encode(s)];
const section = (id: number, body: number[]): number[] => [id, ...uleb(body.length), ...body];

const get = (local: number): number[] => [0x20, ...uleb(local)];
const set = (local: number): number[] => [0x21, ...uleb(local)];
const num = (value: number): number[] => [0x41, ...leb(value)];
const load = (address: number[], offset = 0): number[] => [...address, 0x28, 2, ...uleb(offset)];
const store = (address: number[], value: number[], offset = 0): number[] => [
  ...address,
  ...value,
  0x36,
  2,
  ...uleb(offset),
];
const load64 = (address: number[], offset = 0): number[] => [...address, 0x29, 3, ...uleb(offset)];
const store64 = (address: number[], value: number[], offset = 0): number[] => [
  ...address,
  ...value,
  0x37,
  3,
  ...uleb(offset),
];
const add = (a: number[], b: number[]): number[] => [...a, ...b, 0x6a];
const mul = (a: number[], b: number[]): number[] => [...a, ...b, 0x6c];
const sub = (a: number[], b: number[]): number[] => [...a, ...b, 0x6b];
const equal = (a: number[], b: number[]): number[] => [...a, ...b, 0x46];
const call = (index: number, ...args: number[][]): number[] => [
  ...args.flat(),
  0x10,
  ...uleb(index),
];
const when = (condition: number[], then: number[]): number[] => [
  ...condition,
  0x04,
  0x40,
  ...then,
  0x0b,
];
const result = (value: number): number[] => [...num(value), 0x0f];

const context = get(0);
const fuel = get(1);
const param = (offset: number): number[] => load(load(context, CTX.params), offset);
const blockX = load(context, CTX.ctaid);

/** Runs `body` until it returns, and yields when the fuel is used up. */
const looping = (body: number[]): number[] => [
  0x03,
  0x40,
  ...body,
  ...sub(fuel, num(1)),
  ...set(1),
  ...when(equal(fuel, num(0)), result(STATUS.yielded)),
  0x0c,
  0x00,
  0x0b,
  0x00,
];

const IMPORTS = ['host_vprintf', 'host_malloc', 'host_free', 'host_assert'];

interface FakeKernel {
  /** The sizes of the parameters: 8 is an address. */
  params: number[];
  code: number[];
  extra?: Partial<WasmKernel>;
}

const KERNELS: Record<string, FakeKernel> = {
  empty: { params: [], code: result(STATUS.done) },
  /** out[block] = value + block */
  store: {
    params: [8, 4],
    code: [
      ...store(add(param(0), mul(blockX, num(4))), add(param(8), blockX)),
      ...result(STATUS.done),
    ],
  },
  /** list[++list[0]] = value */
  append: {
    params: [8, 4],
    code: [
      ...store(param(0), add(load(param(0)), num(1))),
      ...store(add(param(0), mul(load(param(0)), num(4))), param(8)),
      ...result(STATUS.done),
    ],
  },
  /** Until *flag === value */
  spin: {
    params: [8, 4],
    code: looping(when(equal(load(param(0)), param(8)), result(STATUS.done))),
    extra: { yields: true },
  },
  /** Takes the given number of back edges, counted in scratch, then executes *out += 1. */
  count: {
    params: [8, 4],
    code: looping([
      ...store(load(context, CTX.scratch), add(load(load(context, CTX.scratch)), num(1))),
      ...when(equal(load(load(context, CTX.scratch)), param(8)), [
        ...store(param(0), add(load(param(0)), num(1))),
        ...result(STATUS.done),
      ]),
    ]),
    extra: { yields: true },
  },
  /** Block i waits for flags[i + 1], the last one for nothing; then sets flags[i]. */
  chain: {
    params: [8, 4],
    code: looping(
      when(
        [
          ...equal(add(blockX, num(1)), param(8)),
          ...equal(load(add(param(0), mul(blockX, num(4))), 4), num(1)),
          0x72,
        ],
        [...store(add(param(0), mul(blockX, num(4))), num(1)), ...result(STATUS.done)],
      ),
    ),
    extra: { yields: true },
  },
  fault: {
    params: [4],
    code: [
      ...store(context, param(0), CTX.faultKind),
      ...store(context, num(0x1234), CTX.faultAddress),
      ...store(context, num(0), CTX.faultAddress + 4),
      ...store(context, num(42), CTX.faultLine),
      ...store(context, num(5), CTX.faultThread),
      ...result(STATUS.fault),
    ],
  },
  crash: { params: [], code: [0x00] },
  /** Writes the context block, as the kernel sees it. */
  dump: {
    params: [8],
    code: [...param(0), ...context, ...num(CTX.bytes), 0xfc, 0x0a, 0, 0, ...result(STATUS.done)],
  },
  print: { params: [8, 8], code: [...call(0, param(0), param(8)), 0x1a, ...result(STATUS.done)] },
  malloc: {
    params: [8, 8],
    code: [
      ...store64(param(0), call(1, load64(load(context, CTX.params), 8))),
      ...result(STATUS.done),
    ],
  },
  free: {
    params: [8],
    code: [...call(2, load64(load(context, CTX.params))), ...result(STATUS.done)],
  },
  assert: {
    params: [8],
    code: [
      ...call(3, param(0), param(0), num(7), param(0), context, num(0)),
      ...result(STATUS.done),
    ],
  },
  /** *out += scratch[0]; scratch[0] = 1 */
  scratch: {
    params: [8],
    code: [
      ...store(param(0), add(load(param(0)), load(load(context, CTX.scratch)))),
      ...store(load(context, CTX.scratch), num(1)),
      ...result(STATUS.done),
    ],
  },
  small: {
    params: [],
    code: result(STATUS.done),
    extra: { maxThreads: 64, sharedBytes: 1024, localBytes: 16, registers: 12 },
  },
  exact: { params: [], code: result(STATUS.done), extra: { requiredBlock: [8, 4, 1] } },
};

/** The text that has every kernel. */
export const ALL_KERNELS = Object.keys(KERNELS).join(' ');

export function fakeCompile(source: string): WasmModule {
  const words = source.split(/\s+/).filter((word) => word !== '');
  const place = { line: 3, column: 1, sourceLine: source };
  if (words.includes('!syntax')) throw new PtxError('syntax', 'unexpected token', place);
  if (words.includes('!unsupported'))
    throw new PtxError('unsupported', 'wgmma.mma_async is not covered', place);
  const names = words.filter((word) => word in KERNELS);
  const variables = words
    .filter((word) => word.startsWith('$'))
    .map((word, index) => ({
      name: word.slice(1),
      space: 'global' as const,
      offset: index * 64,
      size: 64,
      align: 8,
      visible: !word.startsWith('$_'),
    }));
  const data = new Uint8Array(variables.length * 64);
  data.forEach((_, index) => (data[index] = index));
  return {
    version: '8.3',
    target: 'sm_80',
    wasm: assemble(names),
    data,
    variables,
    relocations: variables.length > 1 ? [{ offset: 8, addend: 64 }] : [],
    hostImports: IMPORTS,
    failures: words.includes('!partly')
      ? [
          {
            kernel: 'hard',
            error: new PtxError('unsupported', 'wgmma.mma_async is not covered', place),
          },
        ]
      : [],
    kernels: names.map((name): WasmKernel => {
      const { params, extra } = KERNELS[name]!;
      let offset = 0;
      const laid = params.map((size, index) => {
        offset = Math.ceil(offset / size) * size;
        const at = offset;
        offset += size;
        return {
          name: `p${index}`,
          type: size === 8 ? 'u64' : 'u32',
          size,
          align: size,
          offset: at,
          aggregate: false,
          pointer: size === 8,
        };
      }) as WasmKernel['params'];
      return {
        name,
        exportName: name,
        params: laid,
        paramBytes: offset,
        sharedBytes: 0,
        sharedAlign: 1,
        usesDynamicShared: false,
        localBytes: 0,
        registers: 8,
        maxThreads: 0,
        blockBytes: (threads: number) => threads * 4,
        yields: false,
        runsOn: false,
        inWarpSteps: false,
        cluster: { explicit: false, gridOfClusters: false },
        inLanes: () => 'it is a fake',
        waiting: () => [],
        ...extra,
      };
    }),
  };
}

function assemble(names: readonly string[]): Uint8Array {
  const types = [
    [0x60, 2, 0x7f, 0x7f, 1, 0x7f],
    [0x60, 1, 0x7e, 1, 0x7e],
    [0x60, 1, 0x7e, 0],
    [0x60, 6, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0],
  ];
  const imports = [
    [...text('env'), ...text('memory'), 2, 3, 1, ...uleb(65536)],
    [...text('env'), ...text('dataBase'), 3, 0x7f, 0],
    ...IMPORTS.map((name, index) => [...text('env'), ...text(name), 0, index]),
  ];
  const bodies = names.map((name) => [0, ...KERNELS[name]!.code, 0x0b]);
  return Uint8Array.from([
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...section(1, [types.length, ...types.flat()]),
    ...section(2, [imports.length, ...imports.flat()]),
    ...section(3, [names.length, ...names.map(() => 0)]),
    ...section(7, [
      names.length,
      ...names.flatMap((name, index) => [...text(name), 0, IMPORTS.length + index]),
    ]),
    ...section(10, [names.length, ...bodies.flatMap((body) => [...uleb(body.length), ...body])]),
  ]);
}
