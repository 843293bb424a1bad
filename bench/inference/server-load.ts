/**
 * The example server at 80 % of its capacity, and at twice its capacity. The capacity is measured
 * first, with as many clients as keep its batches full; the load itself does not depend on answers.
 * On hosts that others share it changes within seconds, by a third and more (the same JavaScript
 * then takes that much longer, function by function): where a share of it matters, the capacity is
 * measured before and after each few seconds of load, and parts in which it has changed do not
 * count. They are repeated, and their number is reported.
 */
import type { Benchmark, Contender, Setup } from '../benchmark.js';
import { HUNG_MS, quantile } from './load.js';
import type { Answer } from './load.js';
import { MAX_BATCH, MAX_DELAY_MS, ServerProcess } from './server-process.js';

const CAPACITY_MS = 6000;
const SERVICE_MS = 3000;
const CALM_SECONDS = 20;
/** Parts of the load at 80 %; the capacity is measured before each. */
const CALM_PARTS = 10;
const PART_SERVICE_MS = 300;
const PART_CAPACITY_MS = 1000;
/** The allowed change of the capacity between before and after a part of the load. */
const MOST_CHANGE = 0.1;
/** The largest number of repeated parts: after that all parts count. */
const MOST_REPEATED = 25;
/** The time of all parts and measurements, in seconds. */
const CALM_LIMIT = 180;
/** The same number of requests to its HTTP alone. */
const BARE_SECONDS = 10;
/**
 * The same load before the first round: the first run of new code discards code that was compiled
 * without it.
 */
const WARM_SECONDS = 3;
const OVERLOAD_SECONDS = 60;

/** The capacity of the server. */
interface Measured {
  readonly server: ServerProcess;
  /** Answers a second, with four full batches of clients. */
  readonly capacity: number;
  /**
   * The time of one full batch that arrives at once, from the first byte to the answers: the median
   * of its requests, ms.
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

/** A refused request does not count as an answer. */
function timeOf({ status, ms }: Answer): number {
  return status === 503 ? HUNG_MS : ms;
}

/** The server of each row, which the row starts: peers use its measurements. */
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

/** The rate of the server, sent to one without models. */
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
          // Repeated parts are included: no request may be lost, and every blocked loop is counted.
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
            // On a host whose speed changes within seconds they differ a lot.
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
