/**
 * A million operations of all kinds that end in all ways, at random: dropped before or after they
 * ran, awaited, awaited twice, aborted before, at once or later, with garbage collections in
 * between. At the end all memory and handles must be freed, and only the intended operations may
 * have failed.
 *
 * `node --expose-gc --import tsx bench/ops/random-ends.ts [--device NAME] [--count N] [--seconds N]
 * [--seed N]`. Prints counts; exit status 1 for a leak, an unexpected end, or a hang.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate, setTimeout } from 'node:timers';
import { setImmediate as turn } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { collectGarbage } from '../garbage.js';
import {
  type CoreDevice,
  type DeviceBuffer,
  type DeviceName,
  type DeviceOp,
  type OpContext,
  core,
  ops,
} from '../library.js';
import { openPolicy } from './policy.js';
import { Scale } from './scale.js';

const { allOf, empty, operation, parallel, value } = ops;
const { f32 } = core;

/** Awaited runs at a time. */
const IN_FLIGHT = 256;
/** Operations between two collections, on average. */
const COLLECT_EVERY = 5000;
/** Operations between waits until the runtime thread has taken what was queued. */
const FLUSH_EVERY = 256;
/** Time without an end of an operation that counts as a hang. */
const HANG_MS = 30_000;
/** The number of problems that are printed. */
const TOLD = 20;
/** Turns and collections until unreferenced objects are freed. */
const LAST_COLLECTIONS = 50;
const LEAST_FLOATS = 64;
const MOST_FLOATS = 4096;
/**
 * More than any device has: its allocation fails there, long after the operation has been queued.
 */
const TOO_MANY_FLOATS = 2 ** 44;
/** The library waits for all frees before this failure; a share of one kind of operation only. */
const SHARE_TOO_LARGE = 0.02;

class Refusal extends Error {}

/** Numbers in [0, 1), the same for the same seed. mulberry32 */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

type Random = () => number;
type Fresh = DeviceBuffer<'f32'>;

/** An operation, and the expected error where it is to fail. */
interface Made {
  readonly op: DeviceOp<unknown>;
  readonly fails?: (error: unknown) => boolean;
}

type Kind = (random: Random) => Made;
type End = (made: Made, random: Random) => Promise<unknown> | undefined;

const isRefusal = (error: unknown): boolean => error instanceof Refusal;
const isOutOfMemory = (error: unknown): boolean => error instanceof core.CudaOutOfMemoryError;
const isAbort = (error: unknown): boolean => (error as Error | null)?.name === 'AbortError';

function kindsOf(device: CoreDevice, scale: Scale, graph: DeviceOp<unknown>): Record<string, Kind> {
  const between = (random: Random, least: number, most: number): number =>
    least + Math.floor(random() * (most - least + 1));
  const fresh = (random: Random): DeviceOp<Fresh> => {
    const length = between(random, LEAST_FLOATS, MOST_FLOATS);
    return operation(device, ({ stream }: OpContext) => {
      const buffer = device.alloc(f32, length, { stream });
      buffer.fill(stream, 1);
      return buffer;
    });
  };
  const read = (buffer: Fresh): DeviceOp<Float32Array> =>
    operation(device, ({ stream }: OpContext) => buffer.read(stream));
  const refused = (): DeviceOp<unknown> =>
    scale.first().map(() => {
      throw new Refusal('meant to be');
    });
  return {
    launch: () => ({ op: scale.first() }),
    chain: (random) => ({ op: scale.chain(between(random, 2, 8)) }),
    list: (random) => ({ op: scale.list(between(random, 0, 8)) }),
    nothing: (random) => ({ op: random() < 0.5 ? empty() : value(1).map((one) => one + 1) }),
    // It is never closed.
    'memory, forgotten': (random) => ({ op: fresh(random) }),
    'memory, closed': (random) => ({ op: fresh(random).andThen(() => scale.first()) }),
    'memory, read': (random) => ({ op: fresh(random).andThen(read) }),
    parallel: (random) => ({
      op: parallel(
        ...Array.from({ length: between(random, 1, 3) }, () =>
          fresh(random).andThen(() => value(0)),
        ),
      ),
    }),
    shared: (random) => {
      const once = fresh(random).shared();
      return { op: allOf([once, once.andThen(read), scale.first()]) };
    },
    unzipped: (random) => {
      const [first, second] = allOf([scale.first(), fresh(random)]).unzip(2) as [
        DeviceOp<unknown>,
        DeviceOp<unknown>,
      ];
      return { op: random() < 0.5 ? first : second };
    },
    graph: () => ({ op: graph }),
    'failing on the device': (random) => {
      // Memory that no other operation uses: the output of a failed operation is undefined.
      if (random() > SHARE_TOO_LARGE) return { op: fresh(random).andThen(() => empty()) };
      const large = operation(device, ({ stream }: OpContext) =>
        device.alloc(f32, TOO_MANY_FLOATS, { stream }),
      );
      return { op: large.andThen(() => empty()), fails: isOutOfMemory };
    },
    refused: () => ({ op: refused(), fails: isRefusal }),
    recovered: () => ({ op: refused().orElse(() => scale.first()) }),
    ensured: (random) => ({
      op: (random() < 0.5 ? scale.first() : scale.chain(3)).ensure(() => scale.first()),
    }),
  };
}

/** A run that begins at once; one that fails while it is queued rejects like any other. */
function begin(run: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    return Promise.resolve(run());
  } catch (error) {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- rethrown
    return Promise.reject(error);
  }
}

/** Resolves where the promise resolves or rejects as expected. */
async function expected(
  promise: Promise<unknown>,
  { fails }: Made,
  aborted = false,
): Promise<void> {
  try {
    await promise;
  } catch (error) {
    if ((aborted && isAbort(error)) || fails?.(error) === true) return;
    throw error;
  }
  if (fails !== undefined) throw new Error('an operation that fails has resolved');
}

function endsOf(device: CoreDevice, policy: ReturnType<typeof openPolicy>): Record<string, End> {
  const run = ({ op }: Made, signal: AbortSignal): Promise<unknown> =>
    begin(() => op.run({ signal }));
  const abortedBy = (made: Made, when: (abort: () => void) => void): Promise<unknown> => {
    const controller = new AbortController();
    const promise = run(made, controller.signal);
    when(() => {
      controller.abort();
    });
    return expected(promise, made, true);
  };
  return {
    dropped: () => undefined,
    'scheduled and dropped': ({ op }) => {
      op.schedule(policy);
      return undefined;
    },
    'begun and dropped': ({ op, fails }) => {
      try {
        op.runOn(policy.nextStream());
      } catch (error) {
        if (fails?.(error) !== true) return Promise.reject(error as Error);
      }
      return undefined;
    },
    awaited: (made) =>
      expected(
        begin(() => made.op),
        made,
      ),
    'awaited on a stream': (made) =>
      expected(
        begin(() => made.op.runOn(policy.nextStream())),
        made,
      ),
    'scheduled and awaited': (made) =>
      expected(
        begin(() => made.op.schedule()),
        made,
      ),
    'awaited twice at once': (made) =>
      expected(
        begin(() => Promise.all([made.op, begin(() => made.op.runOn(device.stream))])),
        made,
      ),
    'aborted before': (made) => expected(run(made, AbortSignal.abort()), made, true),
    'aborted at once': (made) =>
      abortedBy(made, (abort) => {
        abort();
      }),
    'aborted in the same turn': (made) =>
      abortedBy(made, (abort) => {
        queueMicrotask(abort);
      }),
    'aborted a turn later': (made) =>
      abortedBy(made, (abort) => {
        setImmediate(abort);
      }),
    'aborted after a while': (made, random) =>
      abortedBy(made, (abort) => {
        setTimeout(abort, Math.ceil(random() * 3));
      }),
  };
}

/** The countable objects of a device. */
async function inventory(device: CoreDevice): Promise<{ bytes: number; handles: number }> {
  await device.finished();
  const pool = await device.pool();
  const { used } = await pool.statistics();
  // `count` exists for leak checks and is not public.
  return { bytes: used, handles: device.runtime.handles.count };
}

/**
 * Waits until the counts are as before, or for a limited time. Events of streams and the like exist
 * from the first use on.
 */
async function settled(device: CoreDevice, before: { bytes: number; handles: number }) {
  let now = await inventory(device);
  for (
    let i = 0;
    i < LAST_COLLECTIONS && (now.bytes > before.bytes || now.handles > before.handles);
    i++
  ) {
    collectGarbage();
    await turn();
    await turn();
    now = await inventory(device);
  }
  return now;
}

const { values: options } = parseArgs({
  options: {
    device: { type: 'string' },
    count: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '540' },
    seed: { type: 'string', default: '1' },
  },
});
const count = Number(options.count);
const deadline = performance.now() + Number(options.seconds) * 1000;
const random = randomFrom(Number(options.seed));

const device = await core.CoreDevice.open(options.device as DeviceName | undefined);
const policy = openPolicy(device);
const scale = await Scale.open(device);
const graph = await scale.chain(10).capture();
const kinds = Object.entries(kindsOf(device, scale, graph.replay()));
const ends = Object.entries(endsOf(device, policy));
const counts = new Map<string, number>();
const tally = (name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1);
const problems = new Map<string, number>();
const problem = (name: string, error: unknown): void => {
  const text = `${name}: ${error instanceof Error ? error.message : String(error)}`.slice(0, 300);
  problems.set(text, (problems.get(text) ?? 0) + 1);
};
device.on('error', (error: unknown) => {
  // Errors of runs without a wait, or whose only wait was aborted.
  if (isOutOfMemory(error)) tally('told to the device');
  else problem('told to the device', error);
});
process.on('unhandledRejection', (error) => {
  problem('unhandled', error);
});
// One warns of collected memory, which is intended here.
process.removeAllListeners('warning');
process.on('warning', (warning) => {
  if ((warning as { code?: string }).code !== 'CUDA_LEAK') problem('warned', warning);
});

let inFlight = 0;
let done = 0;
let lastEnd = performance.now();
let room: (() => void) | undefined;

async function step(): Promise<void> {
  const [kindName, kind] = kinds[Math.floor(random() * kinds.length)]!;
  const [endName, end] = ends[Math.floor(random() * ends.length)]!;
  tally(`kind ${kindName}`);
  tally(`end ${endName}`);
  const promise = end(kind(random), random);
  if (promise === undefined) return;
  inFlight++;
  promise
    .catch((error: unknown) => {
      problem(`${kindName}, ${endName}`, error);
    })
    .finally(() => {
      inFlight--;
      lastEnd = performance.now();
      room?.();
    });
  if (inFlight < IN_FLIGHT) return;
  await new Promise<void>((resolve) => {
    room = resolve;
  });
  room = undefined;
}

function report(outcome: string, more: Record<string, unknown>): void {
  console.log(
    JSON.stringify(
      {
        outcome,
        device: device.name,
        operations: done,
        seconds: Math.round(performance.now() / 100) / 10,
        seed: Number(options.seed),
        ...more,
        counts: Object.fromEntries([...counts].sort(([a], [b]) => a.localeCompare(b))),
        problems: Object.fromEntries([...problems].slice(0, TOLD)),
      },
      undefined,
      2,
    ),
  );
}

const watchdog = setInterval(() => {
  if (performance.now() - lastEnd < HANG_MS) return;
  report('HANG', { inFlight });
  process.exit(1);
}, 1000);

/** All kinds first: streams have their events, and code is compiled, from the first use on. */
async function work(operations: number): Promise<void> {
  for (let i = 0; i < operations && performance.now() < deadline; i++) {
    await step();
    done++;
    if (i % FLUSH_EVERY === 0) {
      await policy.streams[0]!.ready();
      await turn();
    }
    if (random() < 1 / COLLECT_EVERY) collectGarbage();
  }
  while (inFlight > 0) await turn();
  await device.finished();
}

await work(Math.min(20_000, count / 10));
const before = await settled(device, { bytes: 0, handles: 0 });
collectGarbage();
const heapBefore = process.memoryUsage().heapUsed;
done = 0;
counts.clear();
await work(count);
const after = await settled(device, before);
collectGarbage();
const heapAfter = process.memoryUsage().heapUsed;
clearInterval(watchdog);
const leaks = after.bytes > before.bytes || after.handles > before.handles;
const failed = leaks || problems.size > 0;
report(
  failed
    ? leaks
      ? 'LEAK'
      : 'UNEXPECTED ENDS'
    : done < count
      ? 'ok, cut short by --seconds'
      : 'ok',
  {
    before,
    after,
    heapMiB: { before: Math.round(heapBefore / 2 ** 20), after: Math.round(heapAfter / 2 ** 20) },
  },
);
await graph.close();
await scale.close();
policy.close();
await device.close();
process.exitCode = failed ? 1 : 0;
