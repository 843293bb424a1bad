/** Texts and packed bytes. */
import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(32);
const bytes = random.bytes(20_000);

/** A block of LZ4: literals and copies of four bytes and more, the last five literals. */
function packed(plain: readonly number[]): number[] {
  const out: number[] = [];
  const length = (value: number): void => {
    for (let rest = value - 15; rest >= 0; rest -= 255) out.push(Math.min(rest, 255));
  };
  const put = (literals: readonly number[], copied: number, distance: number): void => {
    out.push((Math.min(literals.length, 15) << 4) | Math.min(Math.max(copied - 4, 0), 15));
    length(literals.length);
    out.push(...literals);
    if (copied === 0) return;
    out.push(distance & 255, distance >> 8);
    length(copied - 4);
  };
  const seen = new Map<string, number>();
  let [at, begin] = [0, 0];
  while (at < plain.length - 5) {
    const four = plain.slice(at, at + 4).join();
    const before = seen.get(four);
    seen.set(four, at);
    if (before === undefined) {
      at++;
      continue;
    }
    let copied = 4;
    while (at + copied < plain.length - 5 && plain[before + copied] === plain[at + copied])
      copied++;
    put(plain.slice(begin, at), copied, at - before);
    at += copied;
    begin = at;
  }
  put(plain.slice(begin), 0, 0);
  return out;
}
const plains = Array.from({ length: 40 }, (_, i) => {
  const plain: number[] = [];
  while (plain.length < 300 + 37 * i) {
    const kind = random.below(3);
    const back = random.below(plain.length + 1);
    for (let n = random.below([400, 60, 30][kind]!); n > 0; n--)
      plain.push(kind === 0 ? i : kind === 1 ? (plain[back + (n % 9)] ?? 7) : random.below(16));
  }
  return plain.slice(0, 2000);
});
const blocks = plains.map(packed);
const places = Int32Array.from({ length: 41 }, (_, i) =>
  blocks.slice(0, i).reduce((sum, block) => sum + block.length, 0),
);
const unpacked = (): Uint8Array => {
  const all = new Uint8Array(40 * 2048);
  plains.forEach((plain, i) => {
    all.set(plain, 2048 * i);
  });
  return all;
};

/** Symbol s has a code of `lengths[s]` bits, canonical; the table is by the next nine bits. */
const lengths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 9];
const table = new Uint16Array(512);
const codes = lengths.map((length, s) => {
  const first = lengths.slice(0, s).reduce((sum, before) => sum + (1 << (9 - before)), 0);
  table.fill((length << 8) | (s * 21), first, first + (1 << (9 - length)));
  return first >> (9 - length);
});
const symbols = Array.from({ length: 300 * 50 }, () =>
  Math.min(9, Math.floor(-Math.log2(1 - random.unit()))),
);
const bits = symbols.map((s) => codes[s]!.toString(2).padStart(lengths[s]!, '0'));
const starts = new Uint32Array(300);
for (let i = 1; i < 300; i++)
  starts[i] = starts[i - 1]! + bits.slice(50 * (i - 1), 50 * i).join('').length;
const stream = Uint8Array.from((bits.join('') + '0'.repeat(64)).match(/.{8}/g)!, (byte) =>
  parseInt(byte, 2),
);

const patterns = ['0', '010', '1021', '33', '2101', '3210', '0000', '102'];
const letters = Uint8Array.from({ length: 20_000 }, () => random.below(4));
/**
 * Aho-Corasick: the words are the states, a state goes on to the longest of its ends that is one.
 */
const states = [
  ...new Set(
    patterns.flatMap((pattern) =>
      Array.from({ length: pattern.length + 1 }, (_, n) => pattern.slice(0, n)),
    ),
  ),
].sort((a, b) => a.length - b.length);
const goOn = Int16Array.from(
  states.flatMap((state) =>
    ['0', '1', '2', '3'].map((letter) => {
      const whole = state + letter;
      for (let from = 0; ; from++)
        if (states.includes(whole.slice(from))) return states.indexOf(whole.slice(from));
    }),
  ),
);
const found = Uint8Array.from(states, (state) =>
  patterns.reduce((mask, pattern, i) => mask | (state.endsWith(pattern) ? 1 << i : 0), 0),
);
const occurrences = (): number[] => {
  const whole = letters.join('');
  return patterns.map(
    (pattern) => Array.from(letters).filter((_, at) => whole.startsWith(pattern, at)).length,
  );
};

const value = (depth: number): unknown => {
  switch (random.below(depth > 4 ? 2 : 4)) {
    case 0:
      return random.below(1000);
    case 1:
      return ['a"b', 'x\\"[y', '{:,}', '\\\\', 'plain'][random.below(5)];
    case 2:
      return Array.from({ length: random.below(6) }, () => value(depth + 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(6) }, (_, i) => [`k"${i}`, value(depth + 1)]),
      );
  }
};
const json = Uint8Array.from(
  Buffer.from(JSON.stringify(Array.from({ length: 150 }, () => value(0)))),
);
const structure: number[] = [];
for (let at = 0, inside = false; at < json.length; at++) {
  const character = String.fromCharCode(json[at]!);
  if (inside && character === '\\') at++;
  else if (character === '"') inside = !inside;
  else if (!inside && '{}[]:,'.includes(character)) structure.push(at);
}

export const TEXT: SampleModule = {
  name: 'text',
  cases: [
    {
      kernel: 'base64',
      name: 'two bytes over',
      memory: { bytes, out: new Uint8Array(26_668) },
      launches: [{ grid: 53, block: 128, args: ['bytes', 'out', 20_000] }],
      outputs: {
        out: { equal: 'bits', reference: () => Buffer.from(Buffer.from(bytes).toString('base64')) },
      },
    },
    {
      kernel: 'lz4',
      name: 'copies that overlap',
      memory: {
        packed: Uint8Array.from(blocks.flat()),
        places,
        out: new Uint8Array(40 * 2048),
        sizes: new Int32Array(40),
      },
      launches: [{ grid: 2, block: 32, args: ['packed', 'places', 'out', 2048, 'sizes', 40] }],
      outputs: {
        out: { equal: 'bits', reference: unpacked },
        sizes: { equal: 'bits', reference: () => plains.map(({ length }) => length) },
      },
    },
    {
      kernel: 'huff',
      name: '300 streams of 50 symbols',
      memory: { stream, starts, table, out: new Uint8Array(symbols.length) },
      launches: [{ grid: 5, block: 64, args: ['stream', 'starts', 'table', 'out', 50, 300] }],
      outputs: { out: { equal: 'bits', reference: () => symbols.map((s) => s * 21) } },
    },
    {
      kernel: 'aho',
      name: 'eight patterns',
      memory: { letters, goOn, found, counts: new Uint32Array(8) },
      launches: [
        {
          grid: 3,
          block: 128,
          shared: 32,
          args: ['letters', 20_000, 'goOn', 'found', 'counts', 64, 3],
        },
      ],
      outputs: { counts: { equal: 'bits', reference: occurrences } },
    },
    {
      kernel: 'json',
      name: 'quotes and backslashes',
      memory: { json, places: new Int32Array(json.length), total: new Int32Array(1) },
      launches: [{ grid: 1, block: 256, args: ['json', json.length, 'places', 'total'] }],
      outputs: {
        places: {
          equal: 'bits',
          reference: () => Int32Array.from({ length: json.length }, (_, i) => structure[i] ?? 0),
        },
        total: { equal: 'bits', reference: () => [structure.length] },
      },
    },
  ],
};
