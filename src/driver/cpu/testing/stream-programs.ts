/**
 * Random programs of streams and events, and CUDA's rules for the order in which their work may
 * run: for each operation the ones that must come before it. Work is a kernel that appends its
 * number to a list in device memory, so that the list is the order in which the device did it.
 */
import * as fc from '../../../../test/fast-check.js';
import type { FakeDevice } from './open-fake.js';

export type Step =
  | { do: 'work'; stream: number; spin: number }
  | { do: 'record'; stream: number; event: number }
  | { do: 'wait'; stream: number; event: number }
  | { do: 'poll'; budget: number };

export function programs(streams: number, events: number, polls: boolean): fc.Arbitrary<Step[]> {
  const stream = fc.nat(streams - 1);
  const event = fc.nat(events - 1);
  const kinds: fc.Arbitrary<Step>[] = [
    // Some kernels use up their fuel several times before they append.
    fc.record({
      do: fc.constant('work' as const),
      stream,
      spin: fc.constantFrom(0, 0, 0, 1000, 100_000, 300_000),
    }),
    fc.record({ do: fc.constant('work' as const), stream, spin: fc.constant(0) }),
    fc.record({ do: fc.constant('record' as const), stream, event }),
    fc.record({ do: fc.constant('wait' as const), stream, event }),
  ];
  if (polls)
    kinds.push(fc.record({ do: fc.constant('poll' as const), budget: fc.constantFrom(0, 5, 100) }));
  return fc.array(fc.oneof(...kinds), { maxLength: 40 });
}

/**
 * Returns pairs [earlier, later] of work numbers that the device must respect. `legacy`: the stream
 * that waits for all others.
 */
export function order(
  program: readonly Step[],
  streams: number,
  legacy = -1,
  nonBlocking: ReadonlySet<number> = new Set(),
): [number, number][] {
  const pairs: [number, number][] = [];
  // The work of each stream that everything queued to it from now on comes after.
  const before: Set<number>[] = Array.from({ length: streams }, () => new Set());
  const recorded = new Map<number, Set<number>>();
  let number = 0;
  for (const step of program) {
    if (step.do === 'poll') continue;
    const now = before[step.stream]!;
    if (step.do === 'wait') {
      for (const work of recorded.get(step.event) ?? []) now.add(work);
      continue;
    }
    if (step.stream === legacy) {
      before.forEach((other, index) => {
        if (!nonBlocking.has(index)) for (const work of other) now.add(work);
      });
    } else if (legacy >= 0 && !nonBlocking.has(step.stream)) {
      for (const work of before[legacy]!) now.add(work);
    }
    if (step.do === 'record') {
      recorded.set(step.event, new Set(now));
    } else {
      number++;
      for (const work of now) pairs.push([work, number]);
      now.add(number);
    }
  }
  return pairs;
}

/** Makes the calls of a program; the work appends to `list`. Returns the amount of work. */
export function run(
  device: FakeDevice,
  program: readonly Step[],
  streams: readonly number[],
  events: readonly number[],
  list: number,
  sink: number,
): number {
  const { cu, kernel, launch } = device;
  const append = kernel('append');
  const count = kernel('count');
  let number = 0;
  for (const step of program) {
    switch (step.do) {
      case 'poll':
        cu.poll(step.budget);
        break;
      case 'record':
        cu.cuEventRecord(events[step.event]!, streams[step.stream]!);
        break;
      case 'wait':
        cu.cuStreamWaitEvent(streams[step.stream]!, events[step.event]!, 0);
        break;
      default:
        if (step.spin > 0) launch(count, streams[step.stream]!, [[sink], step.spin]);
        launch(append, streams[step.stream]!, [[list], ++number]);
    }
  }
  return number;
}

/** Returns the pairs that a list of work numbers violates. */
export function violations(
  done: readonly number[],
  pairs: readonly [number, number][],
): [number, number][] {
  const at = new Map(done.map((number, index) => [number, index]));
  return pairs.filter(([earlier, later]) => !(at.get(earlier)! < at.get(later)!));
}
