/**
 * f16, bf16 and f8: every bit pattern is compared with references that share no code with the
 * library.
 */
import { DTYPES, bf16, f8e4m3 } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import type { NarrowName } from '../../src/ground/narrow-floats.js';
import { onDevice } from './test-device.js';

/** The bits of the exponent and of the fraction of each format. */
const FORMATS: Readonly<Record<NarrowName, readonly [exponent: number, fraction: number]>> = {
  f16: [5, 10],
  bf16: [8, 7],
  f8e4m3: [4, 3],
  f8e5m2: [5, 2],
};

const word = new DataView(new ArrayBuffer(4));

/**
 * The f32 of the bits, by building the bits of the wider format, without arithmetic that rounds.
 */
function reference(name: NarrowName, bits: number): number {
  if (name === 'bf16') {
    word.setUint32(0, bits << 16);
    return word.getFloat32(0);
  }
  const [exponentBits, fractionBits] = FORMATS[name];
  const bias = 2 ** (exponentBits - 1) - 1;
  const sign = bits >>> (exponentBits + fractionBits);
  let exponent = (bits >>> fractionBits) & (2 ** exponentBits - 1);
  let fraction = bits & (2 ** fractionBits - 1);
  if (
    name === 'f8e4m3'
      ? (bits & 0x7f) === 0x7f
      : exponent === 2 ** exponentBits - 1 && fraction !== 0
  )
    return NaN;
  if (name !== 'f8e4m3' && exponent === 2 ** exponentBits - 1)
    return sign === 1 ? -Infinity : Infinity;
  if (exponent === 0) {
    if (fraction === 0) return sign === 1 ? -0 : 0;
    exponent = 1;
    while (fraction < 2 ** fractionBits) {
      fraction *= 2;
      exponent--;
    }
    fraction -= 2 ** fractionBits;
  }
  word.setUint32(
    0,
    ((sign << 31) | ((exponent - bias + 127) << 23) | (fraction << (23 - fractionBits))) >>> 0,
  );
  return word.getFloat32(0);
}

onDevice('narrow floats', (host) => {
  describe.each(Object.keys(FORMATS) as NarrowName[])('%s', (name) => {
    const dtype = DTYPES[name];
    const count = 2 ** (dtype.bytes * 8);
    const allBits = (): Uint8Array | Uint16Array =>
      dtype.bytes === 1
        ? Uint8Array.from({ length: count }, (_, i) => i)
        : Uint16Array.from({ length: count }, (_, i) => i);

    test('every bit pattern reads as its exact value', async () => {
      using buffer = host.device.alloc(dtype, count);
      buffer.writeBits(host.stream, allBits() as never);
      const values = await buffer.read(host.stream);
      const wrong: number[] = [];
      for (let bits = 0; bits < count; bits++)
        if (!Object.is(values[bits], reference(dtype.name, bits))) wrong.push(bits);
      expect(wrong).toEqual([]);
    });

    test('every value writes as its bit pattern', async () => {
      const values = Float32Array.from({ length: count }, (_, bits) => reference(dtype.name, bits));
      using buffer = host.device.alloc(dtype, count);
      buffer.write(host.stream, values);
      const bits = await buffer.readBits(host.stream);
      const wrong: number[] = [];
      // The payload of a NaN is not kept.
      for (let i = 0; i < count; i++) {
        const same = Number.isNaN(values[i])
          ? Number.isNaN(reference(dtype.name, bits[i]!))
          : bits[i] === i;
        if (!same) wrong.push(i);
      }
      expect(wrong).toEqual([]);
    });

    test('the middle of two neighbours rounds to the even one, others to the nearer', async () => {
      const sources: number[] = [];
      const expected: number[] = [];
      const last = count / 2 - 1;
      for (let bits = 0; bits < last; bits++) {
        const low = reference(dtype.name, bits);
        const high = reference(dtype.name, bits + 1);
        if (!Number.isFinite(low) || !Number.isFinite(high)) break;
        const middle = low / 2 + high / 2;
        sources.push(middle, -middle);
        const even = bits % 2 === 0 ? bits : bits + 1;
        expected.push(even, even + count / 2);
        word.setFloat32(0, middle);
        const middleBits = word.getUint32(0);
        // Where the middle is not an f32, no value between has to be rounded.
        if (word.getFloat32(0) !== middle || middleBits === 0) {
          sources.splice(-2);
          expected.splice(-2);
          continue;
        }
        word.setUint32(0, middleBits - 1);
        sources.push(word.getFloat32(0));
        expected.push(bits);
        word.setUint32(0, middleBits + 1);
        sources.push(word.getFloat32(0));
        expected.push(bits + 1);
      }
      expect(sources.length).toBeGreaterThan(count / 2);
      using buffer = host.device.alloc(dtype, sources.length);
      buffer.write(host.stream, Float32Array.from(sources));
      const bits = await buffer.readBits(host.stream);
      const wrong = sources.filter((_, i) => bits[i] !== expected[i]);
      expect(wrong).toEqual([]);
    });

    test('values that are too large overflow as the format defines', async () => {
      const largest = Math.max(
        ...Array.from({ length: count }, (_, i) => reference(dtype.name, i)).filter(
          Number.isFinite,
        ),
      );
      const sources = Float32Array.of(
        largest * (dtype === bf16 ? 1 : 1.25),
        3.4028234e38,
        Infinity,
        -Infinity,
      );
      using buffer = host.device.alloc(dtype, sources.length);
      buffer.write(host.stream, sources);
      const [over, huge, infinity, negative] = await buffer.read(host.stream);
      if (dtype === f8e4m3) expect([over, huge, infinity, negative]).toEqual([NaN, NaN, NaN, NaN]);
      else {
        expect(over).toBe(dtype === bf16 ? largest : Infinity);
        expect([huge, infinity, negative]).toEqual([Infinity, Infinity, -Infinity]);
      }
    });

    test('exactly the values that round to the largest value become it', async () => {
      // Half a step above the largest value is a tie between it, which is even in f8e4m3 and odd in
      // the others, and the next value of the format with one more exponent.
      const [largest, tie] = {
        f16: [65504, 65520],
        bf16: [2 ** 127 * (2 - 2 ** -7), undefined],
        f8e4m3: [448, 464],
        f8e5m2: [57344, 61440],
      }[dtype.name];
      using buffer = host.device.alloc(dtype, 3);
      if (tie === undefined) {
        // The tie of bf16 is the f32 between, whose bits are known.
        word.setUint32(0, 0x7f7f7fff);
        buffer.write(host.stream, Float32Array.of(largest!, word.getFloat32(0), 0));
        expect([...(await buffer.read(host.stream))]).toEqual([largest, largest, 0]);
        word.setUint32(0, 0x7f7f8000);
        buffer.write(host.stream, Float32Array.of(word.getFloat32(0), -word.getFloat32(0), 0));
        expect([...(await buffer.read(host.stream))]).toEqual([Infinity, -Infinity, 0]);
        return;
      }
      word.setFloat32(0, tie);
      const [below, above] = [-1, 1].map((step) => {
        const bits = new DataView(new ArrayBuffer(4));
        bits.setUint32(0, word.getUint32(0) + step);
        return bits.getFloat32(0);
      });
      buffer.write(host.stream, Float32Array.of(below!, tie, above!));
      const over = dtype === f8e4m3 ? NaN : Infinity;
      expect([...(await buffer.read(host.stream))]).toEqual([
        largest,
        dtype === f8e4m3 ? largest : over,
        over,
      ]);
      buffer.write(host.stream, Float32Array.of(-below!, -tie, -above!));
      expect([...(await buffer.read(host.stream))]).toEqual([
        -largest!,
        dtype === f8e4m3 ? -largest! : -over,
        -over,
      ]);
    });

    test('fills with the same bits as it writes', async () => {
      using written = host.device.alloc(dtype, 1);
      using filled = host.device.alloc(dtype, 1);
      for (const value of [0, -0, 0.3, -1.7, 100, 1e-3, NaN, Infinity]) {
        written.write(host.stream, Float32Array.of(value));
        filled.fill(host.stream, value);
        expect(await filled.readBits(host.stream)).toEqual(await written.readBits(host.stream));
      }
    });
  });
});
