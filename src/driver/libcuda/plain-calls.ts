/**
 * Methods of the interface that are made from the rows of their calls: those whose row is `plain`.
 * All of them share a few functions, in which V8 finds a different C function at each call: one
 * takes 45 ns, or 55 with a result, where a method of its own takes 35 (koffi on a stand-in). Calls
 * that run for every command have methods of their own.
 */
import type { CUresult } from '../../ground/result.js';
import type { NativeMemory } from '../../native/native-memory.js';
import type { Binding } from './binding.js';
import { resultOf } from './call-row.js';
import type { CallRow, PlainCalls, ResultType } from './call-row.js';
import type { CallName } from './calls.js';
import type { DriverCall } from './driver-call.js';

/** Makes the methods of the plain rows. */
export function plainCalls<Rows extends object>(
  { calls, scratch }: Binding,
  rows: Rows,
): PlainCalls<Rows> {
  const methods: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(rows) as [CallName, CallRow][]) {
    if (row.plain === undefined) continue;
    const call = calls[name] as unknown as DriverCall<unknown[]>;
    methods[name] = plainCall(call, row, scratch);
  }
  return methods as PlainCalls<Rows>;
}

/** Reads a result that C wrote at `offset`. */
const READERS: Readonly<
  Record<ResultType, (scratch: NativeMemory, offset: number) => number | bigint>
> = {
  int: (scratch, offset) => scratch.i32[offset >> 2]!,
  uint32_t: (scratch, offset) => scratch.u32[offset >> 2]!,
  float: (scratch, offset) => scratch.f32[offset >> 2]!,
  uintptr_t: (scratch, offset) => scratch.u64(offset),
  size_t: (scratch, offset) => scratch.u64(offset),
  uint64_t: (scratch, offset) => scratch.bits64(offset),
};

function plainCall(
  call: DriverCall<unknown[]>,
  { args, plain }: CallRow,
  scratch: NativeMemory,
): (...operands: unknown[]) => unknown {
  const fail = (r: CUresult, operands: unknown[]): never => {
    throw call.failure(
      r,
      typeof plain === 'function' ? plain(...(operands as never[])) : undefined,
    );
  };
  // Each result has eight bytes of the scratch memory. The list is kept: only operands change.
  const results = args.flatMap((argument) => resultOf(argument) ?? []);
  let seen = 0;
  const values: unknown[] = args.map((argument) =>
    resultOf(argument) === undefined ? undefined : scratch.address + 8 * seen++,
  );
  const places = values.flatMap((value, place) => (value === undefined ? place : []));
  if (results.length === 0) return withoutResult(call, places.length, fail);

  const run = (operands: unknown[]): void => {
    for (let i = 0; i < places.length; i++) values[places[i]!] = operands[i];
    const r = call.run(...values);
    if (r !== 0) fail(r, operands);
  };
  if (results.length === 1) {
    const read = READERS[results[0]!.type];
    return (...operands) => {
      run(operands);
      return read(scratch, 0);
    };
  }
  return (...operands) => {
    run(operands);
    return Object.fromEntries(
      results.map(({ type, name }, i) => [name, READERS[type](scratch, 8 * i)]),
    );
  };
}

/** Up to three operands are passed on one by one: an array of them takes longer than the rest. */
function withoutResult(
  call: DriverCall<unknown[]>,
  count: number,
  fail: (r: CUresult, operands: unknown[]) => never,
): (...operands: unknown[]) => void {
  switch (count) {
    case 0:
      return () => {
        const r = call.run();
        if (r !== 0) fail(r, []);
      };
    case 1:
      return (a) => {
        const r = call.run(a);
        if (r !== 0) fail(r, [a]);
      };
    case 2:
      return (a, b) => {
        const r = call.run(a, b);
        if (r !== 0) fail(r, [a, b]);
      };
    case 3:
      return (a, b, c) => {
        const r = call.run(a, b, c);
        if (r !== 0) fail(r, [a, b, c]);
      };
    default:
      return (...operands) => {
        const r = call.run(...operands);
        if (r !== 0) fail(r, operands);
      };
  }
}
