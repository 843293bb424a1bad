// The literals that an operand takes: numbers of barriers, counts of threads, positions of bits,
// sizes, and addresses. Only literals are checked, as in NVIDIA's assembler; values of registers
// are checked at run time, if at all.

import type { Arg } from '../analysis/program.js';

type Literal = Arg & { kind: 'integer' | 'float' };

/** The literals that one operand takes. */
interface Values {
  readonly wanted: string;
  takes(literal: Literal, args: readonly Arg[]): boolean;
}

/** Reads a literal as 64 bits, or as the 32 bits that a narrower operand keeps of it. */
type Reading = (value: bigint) => bigint;
const wide: Reading = (value) => BigInt.asIntN(64, value);
const word: Reading = (value) => BigInt.asUintN(32, value);

function integers(
  wanted: string,
  takes: (value: bigint, args: readonly Arg[]) => boolean,
  read = wide,
): Values {
  return {
    wanted,
    takes: (literal, args) => literal.kind !== 'integer' || takes(read(literal.value), args),
  };
}

const within = (least: bigint, most: bigint, read = wide): Values =>
  integers(`a number from ${least} to ${most}`, (value) => value >= least && value <= most, read);
const stepped = (least: bigint, most: bigint, step: bigint): Values =>
  integers(
    `a multiple of ${step} from ${least} to ${most}`,
    (value) => value >= least && value <= most && value % step === 0n,
  );
const only = (...values: readonly bigint[]): Values =>
  integers(values.join(' or '), (value) => values.includes(value));

/** At most the value of another operand, if that is a literal, too. */
const upTo = (place: number, read: Reading): Values =>
  integers(
    `a number up to operand ${place + 1}`,
    (value, args) => {
      const limit = args[place];
      return value >= 0n && (limit?.kind !== 'integer' || value <= read(limit.value));
    },
    read,
  );

const BARRIER = within(0n, 15n, word);
/** Zero means all threads of the block. */
const THREADS = integers('a multiple of 32', (value) => value % 32n === 0n);
/** Unless it is the last operand, which is the predicate. */
const FEWER = integers('a multiple of 32', (value, args) => args.length < 4 || value % 32n === 0n);
const SOME_THREADS = integers(
  'a multiple of 32 above zero',
  (value) => value !== 0n && value % 32n === 0n,
);
const BITS = within(0n, 255n);
const COPIED = stepped(0n, 1048560n, 16n);
const LINE = only(128n);
/** Unless it is the last operand, which is the cache policy. */
const BEFORE_POLICY: Values = {
  wanted: 'a number up to operand 3',
  takes: (literal, args) => args.length < 5 || upTo(2, wide).takes(literal, args),
};
const ARRIVALS = integers('a number above zero', (value) => value > 0n);
const PARITY = only(0n, 1n);
const SIGN = only(-1n, 1n);
const FRACTION: Values = {
  wanted: 'a number above 0.0 and up to 1.0',
  takes: (literal) =>
    literal.kind !== 'float' || ((number) => number > 0 && number <= 1)(floatOf(literal)),
};
const REGISTER: Values = { wanted: 'a register', takes: () => false };

function floatOf({ width, bits }: Literal & { kind: 'float' }): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits << BigInt(64 - width));
  return width === 64 ? view.getFloat64(0) : view.getFloat32(0);
}

interface ValueRow {
  /** Modifiers that the instruction has; it does not have one after an exclamation mark. */
  readonly words: readonly string[];
  readonly place: number;
  readonly values: Values;
}

const row = (words: string, place: number, values: Values): ValueRow => ({
  words: words === '' ? [] : words.split(' '),
  place,
  values,
});

const BARRIER_ROWS = [
  row('sync !warp', 0, BARRIER),
  row('sync !warp', 1, THREADS),
  row('arrive', 0, BARRIER),
  row('arrive', 1, SOME_THREADS),
  row('red', 1, BARRIER),
  row('red', 2, FEWER),
];
/**
 * Instructions on two halves or four bytes at a time: the selectors of their operands have no
 * meaning on a literal.
 */
const VIDEO = ['vadd', 'vsub', 'vavrg', 'vabsdiff', 'vmin', 'vmax', 'vset'].flatMap((name) => [
  `${name}2`,
  `${name}4`,
]);

const ROWS: ReadonlyMap<string, readonly ValueRow[]> = new Map([
  ['bar', BARRIER_ROWS],
  ['barrier', BARRIER_ROWS],
  ['bfe', [row('', 2, BITS), row('', 3, BITS)]],
  ['bfi', [row('', 3, BITS), row('', 4, BITS)]],
  ['applypriority', [row('', 1, LINE)]],
  ['discard', [row('', 1, LINE)]],
  ['fence', [row('', 1, LINE)]],
  ['createpolicy', [row('fractional', 1, FRACTION), row('range', 2, upTo(3, word))]],
  [
    'cp',
    [
      row('async ca', 2, only(4n, 8n, 16n)),
      row('async cg', 2, only(16n)),
      ...['ca', 'cg'].flatMap((name) => [
        row(`async ${name} !L2::cache_hint`, 3, upTo(2, wide)),
        row(`async ${name} L2::cache_hint`, 3, BEFORE_POLICY),
      ]),
      row('bulk prefetch !tensor', 1, COPIED),
      row('bulk !prefetch !tensor', 2, COPIED),
      row('bulk multicast::cluster !tensor', 4, within(0n, 65535n)),
      row('tensor multicast::cluster !im2col', 3, within(0n, 65535n)),
      row('tensor multicast::cluster im2col', 4, within(0n, 65535n)),
    ],
  ],
  ['st', [row('bulk', 1, stepped(0n, 16777216n, 8n)), row('bulk', 2, only(0n))]],
  ['setmaxnreg', [row('', 0, stepped(24n, 256n, 8n))]],
  ['pmevent', [row('!mask', 0, within(0n, 15n)), row('mask', 0, within(0n, 65535n))]],
  [
    'mbarrier',
    [
      row('init', 1, within(1n, 1048575n)),
      row('parity', 2, PARITY),
      row('arrive !expect_tx', 2, ARRIVALS),
      row('arrive_drop !expect_tx', 2, ARRIVALS),
    ],
  ],
  [
    'cvt',
    [
      row('rs f16x2', 3, REGISTER),
      row('rs bf16x2', 3, REGISTER),
      row('rs !f16x2 !bf16x2', 2, REGISTER),
    ],
  ],
  [
    'wgmma',
    [
      row('mma_async', 4, SIGN),
      row('mma_async', 5, SIGN),
      row('mma_async', 6, PARITY),
      row('mma_async', 7, PARITY),
      row('wait_group', 0, within(0n, 7n)),
    ],
  ],
  ['movmatrix', [row('', 1, REGISTER)]],
  ['stackrestore', [row('', 0, REGISTER)]],
  ...VIDEO.map((name): [string, ValueRow[]] => [
    name,
    [row('', 1, REGISTER), row('', 2, REGISTER), row('', 3, REGISTER)],
  ]),
]);

const stands = ({ words }: ValueRow, modifiers: readonly string[]): boolean =>
  words.every((text) =>
    text.startsWith('!') ? !modifiers.includes(text.slice(1)) : modifiers.includes(text),
  );

/** Instructions whose global and generic addresses have 64 bits; all others take 32, too. */
const WIDE_ADDRESSES = new Set([
  'ld',
  'ldu',
  'st',
  'atom',
  'red',
  'prefetch',
  'prefetchu',
  'applypriority',
  'discard',
  'mbarrier',
]);
/** State spaces, or kinds of instructions, whose addresses may have 32 bits. */
const NARROW_ADDRESSES = /^(?:shared|local|const|param|async$|bulk$|tensormap$)/;

function addressComplaint(
  mnemonic: string,
  modifiers: readonly string[],
  { base, symbol }: Arg & { kind: 'address' },
): string | undefined {
  if (symbol) return undefined;
  if (!base)
    return modifiers.includes('local') || mnemonic === 'fence'
      ? undefined
      : 'a literal address is one of .local; move the address to a register first';
  if (base.type.kind === 'float')
    return `'${base.name}' is .${base.type.name}, an address is an integer`;
  if (
    base.type.bits !== 32 ||
    !WIDE_ADDRESSES.has(mnemonic) ||
    modifiers.some((text) => NARROW_ADDRESSES.test(text))
  )
    return undefined;
  return (
    `'${base.name}' is .${base.type.name}, an address in this space needs 64 bits; widen it ` +
    'with cvt.u64.u32'
  );
}

/** The error in an instruction's literals and addresses, and the operand. */
export function valueComplaint(
  mnemonic: string,
  modifiers: readonly string[],
  args: readonly Arg[],
): { message: string; at: number } | undefined {
  for (let place = 0; place < args.length; place++) {
    const arg = args[place]!;
    if (arg.kind !== 'address') continue;
    const message = addressComplaint(mnemonic, modifiers, arg);
    if (message !== undefined) return { message, at: arg.at };
  }
  const rows = ROWS.get(mnemonic);
  if (!rows) return undefined;
  for (const each of rows) {
    const arg = args[each.place];
    if (
      (arg?.kind !== 'integer' && arg?.kind !== 'float') ||
      each.values.takes(arg, args) ||
      !stands(each, modifiers)
    )
      continue;
    return {
      message:
        `'${[mnemonic, ...modifiers].join('.')}' takes ${each.values.wanted} as operand ` +
        `${each.place + 1}`,
      at: arg.at,
    };
  }
  return undefined;
}
