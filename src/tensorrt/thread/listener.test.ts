import koffi from 'koffi';
import { expect, test } from 'vitest';

import type { Koffi } from '../../native/koffi.js';
import { generationOf } from './generations.js';
import { Listener } from './listener.js';
import type { Notification } from './messages.js';

const CALLBACKS = generationOf('10').callbacks;

/** koffi, and the number of registered callbacks. */
function counted(): { koffi: Koffi; callbacks: () => number } {
  let callbacks = 0;
  const register = (
    ...args: Parameters<typeof koffi.register>
  ): ReturnType<typeof koffi.register> => {
    callbacks++;
    return koffi.register(...args);
  };
  return { koffi: { ...koffi, register } as unknown as Koffi, callbacks: () => callbacks };
}

/** The object's function in the slot, called as C++ would call it. */
function called(object: number, slot: number, prototype: string): (...args: unknown[]) => unknown {
  const table = koffi.decode(BigInt(object), 'uint64_t') as number | bigint;
  const address = koffi.decode(BigInt(table) + BigInt(slot * 8), 'uint64_t') as number | bigint;
  const type = koffi.proto(prototype);
  return (...args) => koffi.call(BigInt(address), type, object, ...args) as unknown;
}

test('monitors and profilers of one kind share their callbacks, and each receives its own', () => {
  const received: Notification[] = [];
  const { koffi: own, callbacks } = counted();
  const listener = new Listener(own, (message) => received.push(message));
  const cancels = [1, 2, 3].map(() => new Int32Array(new SharedArrayBuffer(4)));
  const monitors = cancels.map((cancel, i) =>
    listener.monitor(i + 1, cancel.buffer as SharedArrayBuffer),
  );
  const profilers = [7, 8].map((id) => listener.profiler(id, CALLBACKS));
  const before = callbacks();
  for (let i = 0; i < 100; i++) {
    listener.release(listener.monitor(100 + i, new SharedArrayBuffer(4)));
    listener.release(listener.profiler(100 + i, CALLBACKS));
  }
  expect(callbacks()).toBe(before);
  expect(new Set([...monitors, ...profilers]).size).toBe(5);

  cancels[2]![0] = 1;
  const begin = called(monitors[1]!, 4, 'void(uintptr_t, const char *, const char *, int32_t)');
  begin('build', null, 4);
  begin('tactics', 'build', 2);
  const step = (i: number): unknown =>
    called(monitors[i]!, 5, 'bool(uintptr_t, const char *, int32_t)')('tactics', 0);
  expect([step(1), step(2)]).toEqual([true, false]);
  called(profilers[0]!, 0, 'void(uintptr_t, const char *, float)')('conv', 1.5);
  expect(received).toEqual([
    { kind: 'progress', monitor: 2, phase: 'build', step: 0, steps: 4 },
    { kind: 'progress', monitor: 2, phase: 'build/tactics', step: 0, steps: 2 },
    { kind: 'progress', monitor: 2, phase: 'build/tactics', step: 1, steps: 2 },
    { kind: 'progress', monitor: 3, phase: 'tactics', step: 1, steps: 0 },
    { kind: 'layer', profiler: 7, layer: 'conv', milliseconds: 1.5 },
  ]);

  listener.release(monitors[0]!);
  expect(listener.monitor(9, new SharedArrayBuffer(4))).toBeGreaterThan(0);
});
