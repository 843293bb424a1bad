/**
 * The example server at 80 % of what it can do, and at twice that. What it can do is measured
 * first, by as many clients as keep its batches full; the load itself comes whether the server
 * answers or not. On hosts that others share it changes within seconds, by a third and more (the
 * same JavaScript then takes that much longer, function by function): where a share of it counts,
 * it is measured before each few seconds of load and behind them, and those in which it has changed
 * are no load of that share. They are made again, and their number is told.
 */
import type { Benchmark, Contender, Setup } from '../benchmark.js';
import { HUNG_MS, quantile } from './load.js';
import type { Answer } from './load.js';
import { MAX_BATCH, MAX_DELAY_MS, ServerProcess } from './server-process.js';

const CAPACITY_MS = 6000;
const SERVICE_MS = 3000;
const CALM_SECONDS = 20;
/** Of the load at 80 %, what it can do being measured before each. */
const CALM_PARTS = 10;
const PART_SERVICE_MS = 300;
const PART_CAPACITY_MS = 1000;
/** Of what it can do, between before and behind a part of the load. */
const MOST_CHANGE = 0.1;
/** Parts that are made again, at most: then those count that there are. */
const MOST_REPEATED = 25;
/** With all of those, and what is measured beside them: seconds. */
const CALM_LIMIT = 180;
/** Of as many requests to its HTTP alone. */
const BARE_SECONDS = 10;
/**
 * Of the same load before: what comes for the first time ends code that was compiled without it.
 */
const WARM_SECONDS = 3;
const OVERLOAD_SECONDS = 60;

/** What the server can do. */
interface Measured {
  readonly server: ServerProcess;
  /** Answers a second, with four full batches of clients. */
  readonly capacity: number;
  /**
   * How long one full batch takes that comes at once, from the first byte to the answers: the
   * median of its requests, ms.
   */
  readonly service: number;
}

async function measured(kind: 'cuda' | 'cpu'): Promise<Measured> {
  const server = await ServerProcess.start(kind);
  await server.load.closed(MAX_BATCH, 1000);
  const service = await serviceOf(server, SERVICE_MS);
  return { server, service, capacity: await capacityOf(server, CAPACITY_MS) };
}

async function serviceOf(server: ServerProcess, ms: number): Promise<number> {
  return quantile(
    good(await server.load.closed(MAX_BATCH, ms)).map((answer) => answer.ms),
    0.5,
  );
}

async function capacityOf(server: ServerProcess, ms: number): Promise<number> {
  const begun = performance.now();
  const answers = good(await server.load.closed(4 * MAX_BATCH, ms));
  return answers.length / ((performance.now() - begun) / 1000);
}

/** @throws Error where a request was lost, hung, or refused */
function good(answers: readonly Answer[]): readonly Answer[] {
  const bad = answers.find(({ status }) => status !== 200);
  if (bad !== undefined) throw new Error(`a request ended with ${bad.status ?? bad.problem}`);
  return answers;
}

/** One that is refused has no answer however long it waits. */
function timeOf({ status, ms }: Answer): number {
  return status === 503 ? HUNG_MS : ms;
}

/** The server of each row, started with it: peers find what was measured here. */
let current: Measured | undefined;

function contender(
  row: (measured: Measured) => Promise<Awaited<ReturnType<Contender['round']>>>,
): (kind: 'cuda' | 'cpu') => Promise<Contender> {
  return async (kind) => {
    const own = await measured(kind);
    current = own;
    return { round: () => row(own), close: () => own.server.close() };
  };
}

function allowed(value: (measured: Measured) => number): () => Promise<Contender> {
  return () => Promise.resolve({ round: () => Promise.resolve({ samples: [value(current!)] }) });
}

/** As many a second as the server has had, to one without models. */
async function bare({ count }: Setup): Promise<Contender> {
  const server = await ServerProcess.bare();
  return {
    async round() {
      const rate = 0.8 * current!.capacity;
      await server.load.open(rate, 1000 * count(WARM_SECONDS));
      const times = good(await server.load.open(rate, 1000 * count(BARE_SECONDS))).map(
        ({ ms }) => ms,
      );
      return {
        samples: times,
        notes: { 'median, ms': quantile(times, 0.5), requests: times.length },
      };
    },
    close: () => server.close(),
  };
}

export const serverLoad: readonly Benchmark[] = [
  {
    area: 'inference',
    name: 'server at 80 % load, p99 of the time to the answer',
    unit: 'ms',
    statistic: 'p99',
    rounds: 1,
    warmUp: false,
    limit: CALM_LIMIT,
    peers: [
      {
        name: '2 × delay + service',
        bar: '<= 1',
        start: allowed(({ service }) => 2 * MAX_DELAY_MS + service),
      },
      { name: 'its HTTP alone, as many requests', start: bare },
    ],
    start: ({ device, count }) =>
      contender(async ({ server, capacity }) => {
        await server.load.open(0.8 * capacity, 1000 * count(WARM_SECONDS));
        const answers: Answer[] = [];
        const parts: number[] = [];
        const services: number[] = [];
        const capacities: number[] = [];
        let [stall, repeated] = [0, 0];
        let before = await capacityOf(server, PART_CAPACITY_MS);
        while (parts.length < CALM_PARTS) {
          const service = await serviceOf(server, PART_SERVICE_MS);
          await server.metrics();
          const part = await server.load.open(
            0.8 * before,
            (1000 * count(CALM_SECONDS)) / CALM_PARTS,
          );
          // Also of parts that are made again: none may be lost, and none may hold the loop up
          // unseen.
          good(part.filter(({ status }) => status !== 503));
          stall = Math.max(stall, await stallOf(server));
          const after = await capacityOf(server, PART_CAPACITY_MS);
          if (Math.abs(after / before - 1) <= MOST_CHANGE || repeated === MOST_REPEATED) {
            answers.push(...part);
            parts.push(quantile(part.map(timeOf), 0.99));
            services.push(service);
            capacities.push(before);
          } else {
            repeated++;
          }
          before = after;
        }
        current = { server, capacity: quantile(capacities, 0.5), service: quantile(services, 0.5) };
        const times = answers.map(timeOf);
        return {
          samples: times,
          notes: {
            refused: answers.filter(({ status }) => status === 503).length,
            'least capacity, 1/s': Math.min(...capacities),
            'greatest capacity, 1/s': Math.max(...capacities),
            'service, ms': current.service,
            'parts made again': repeated,
            'median, ms': quantile(times, 0.5),
            requests: times.length,
            'stall, ms': stall,
            // Of a host that is another one within seconds they are far apart.
            'least p99 of a part, ms': Math.min(...parts),
            'greatest p99 of a part, ms': Math.max(...parts),
          },
        };
      })(device.kind),
  },
  {
    area: 'inference',
    name: 'server at twice its capacity, answers',
    unit: '1/s',
    statistic: 'median',
    rounds: 1,
    warmUp: false,
    peers: [{ name: 'its capacity', bar: '>= 0.8', start: allowed(({ capacity }) => capacity) }],
    start: ({ device, count }) =>
      contender(async ({ server, capacity }) => {
        const seconds = count(OVERLOAD_SECONDS);
        await server.metrics();
        const answers = await server.load.open(2 * capacity, 1000 * seconds);
        const { 200: taken = 0, 503: refused = 0 } = Object.fromEntries(
          [200, 503].map((status) => [
            status,
            answers.filter((each) => each.status === status).length,
          ]),
        ) as Record<number, number>;
        const lost = answers.length - taken - refused;
        if (lost > 0)
          throw new Error(
            `${lost} of ${answers.length} requests were lost or hung: ` +
              `${answers.find(({ problem }) => problem !== undefined)?.problem}`,
          );
        const metrics = await server.metrics();
        if (
          metrics.get('photographs_requests_in_flight') !== 0 ||
          metrics.get('photographs_queue_length') !== 0
        )
          throw new Error('the server still has requests that were answered');
        const times = answers.filter(({ status }) => status === 200).map(({ ms }) => ms);
        return {
          samples: [taken / seconds],
          notes: {
            requests: answers.length,
            taken,
            refused,
            lost,
            'p99 of the taken, ms': quantile(times, 0.99),
            'stall, ms': 1000 * metrics.get('photographs_event_loop_delay_seconds')!,
          },
        };
      })(device.kind),
  },
  {
    area: 'inference',
    name: 'server at twice its capacity, longest stall of its event loop',
    unit: 'ms',
    statistic: 'longest',
    bar: '<= 5',
    rounds: 1,
    warmUp: false,
    peers: [],
    start: ({ device, count }) =>
      contender(async ({ server, capacity }) => {
        await server.metrics();
        await server.load.open(2 * capacity, 1000 * count(CALM_SECONDS));
        return { samples: [await stallOf(server)] };
      })(device.kind),
  },
];

async function stallOf(server: ServerProcess): Promise<number> {
  return 1000 * (await server.metrics()).get('photographs_event_loop_delay_seconds')!;
}
