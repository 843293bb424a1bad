/** Ciphers and hashes, against Node's. */
import { createCipheriv, createHash } from 'node:crypto';

import { Values } from '../host-values.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(31);
const wordsOf = (bytes: Uint8Array): Uint32Array => new Uint32Array(bytes.slice().buffer);

/** The S-box, and the table of the rounds: S-box and the mixing of a column in one. */
const box = new Uint8Array(256);
for (let p = 1, q = 1, first = true; first || p !== 1; first = false) {
  p = (p ^ (p << 1) ^ (p & 128 ? 0x11b : 0)) & 255;
  q ^= q << 1;
  q ^= q << 2;
  q = (q ^ (q << 4)) & 255;
  if (q & 128) q ^= 9;
  box[p] =
    q ^
    ((q << 1) | (q >> 7)) ^
    ((q << 2) | (q >> 6)) ^
    ((q << 3) | (q >> 5)) ^
    ((q << 4) | (q >> 4)) ^
    0x63;
}
box[0] = 0x63;
const double = (x: number): number => ((x << 1) ^ (x & 128 ? 0x11b : 0)) & 255;
const rounds = Uint32Array.from(
  box,
  (s) => (double(s) << 24) | (s << 16) | (s << 8) | (double(s) ^ s),
);

const key = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
const schedule = new Uint32Array(44);
for (let i = 0, constant = 1; i < 44; i++) {
  let word = i < 4 ? key.readUInt32BE(4 * i) : schedule[i - 1]!;
  if (i >= 4) {
    if (i % 4 === 0) {
      word = (word << 8) | (word >>> 24);
      word =
        (box[word >>> 24]! << 24) |
        (box[(word >>> 16) & 255]! << 16) |
        (box[(word >>> 8) & 255]! << 8) |
        box[word & 255]!;
      word ^= constant << 24;
      constant = double(constant);
    }
    word ^= schedule[i - 4]!;
  }
  schedule[i] = word;
}
const blocks = 1000;
const nonce = 0x1234567;
function counters(): Uint32Array {
  const plain = Buffer.alloc(16 * blocks);
  for (let i = 0; i < blocks; i++) {
    plain.writeUInt32BE(nonce, 16 * i);
    plain.writeUInt32BE(nonce * 3, 16 * i + 4);
    plain.writeUInt32BE(i, 16 * i + 12);
  }
  const cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
  return wordsOf(cipher.update(plain));
}

const text = random.bytes(1024);
const message = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, j) => text[(length * 7 + j) & 1023]!);

const messages = random.words(13 * 300);
const sines = Uint32Array.from({ length: 64 }, (_, i) =>
  Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32),
);

const stretch = random.bytes(4 * 130 + 150);
function crc(bytes: Uint8Array): number {
  let c = ~0;
  for (const byte of bytes) {
    c ^= byte;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  }
  return ~c >>> 0;
}

const secret = random.bytes(44);
const stream = (): Uint32Array => {
  const iv = Buffer.concat([Buffer.alloc(4), secret.subarray(32)]);
  return wordsOf(
    createCipheriv('chacha20', secret.subarray(0, 32), iv).update(Buffer.alloc(64 * 400)),
  );
};

export const CIPHERS: SampleModule = {
  name: 'ciphers',
  cases: [
    {
      kernel: 'aes128_ctr',
      name: 'a thousand counters',
      memory: { schedule, rounds, box, out: new Uint32Array(4 * blocks) },
      launches: [
        { grid: 8, block: 128, args: ['schedule', 'rounds', 'box', nonce, 'out', blocks] },
      ],
      outputs: { out: { equal: 'bits', reference: counters } },
    },
    {
      kernel: 'sha256',
      name: 'messages of 0 to 199 bytes',
      memory: { text, out: new Uint8Array(32 * 200) },
      launches: [{ grid: 2, block: 100, args: ['text', 'out', 200] }],
      outputs: {
        out: {
          equal: 'bits',
          reference: () =>
            Array.from({ length: 200 }, (_, i) => [
              ...createHash('sha256').update(message(i)).digest(),
            ]).flat(),
        },
      },
    },
    {
      kernel: 'md5',
      name: 'messages of 52 bytes',
      memory: { messages, out: new Uint32Array(1200), sines },
      launches: [{ grid: 3, block: 128, args: ['messages', 'out', 'sines', 300] }],
      outputs: {
        out: {
          equal: 'bits',
          reference: () =>
            Array.from({ length: 300 }, (_, i) => [
              ...wordsOf(
                createHash('md5')
                  .update(messages.subarray(13 * i, 13 * i + 13))
                  .digest(),
              ),
            ]).flat(),
        },
      },
    },
    {
      kernel: 'crc32',
      name: 'of 21 to 150 bytes',
      memory: { stretch, out: new Uint32Array(130) },
      launches: [{ grid: 3, block: 50, args: ['stretch', 'out', 130, 150] }],
      outputs: {
        out: {
          equal: 'bits',
          reference: () =>
            Array.from({ length: 130 }, (_, i) => crc(stretch.subarray(4 * i, 3 * i + 150))),
        },
      },
    },
    {
      kernel: 'chacha20',
      name: 'blocks 0 to 399',
      memory: { out: new Uint32Array(16 * 400) },
      launches: [{ grid: 7, block: 64, args: [secret, 'out', 400] }],
      outputs: { out: { equal: 'bits', reference: stream } },
    },
  ],
};
