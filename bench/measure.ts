/**
 * Measures one benchmark: our rounds and each peer's take turns, and begin in turn, so that a clock
 * that drifts drifts for all of them.
 */
import { setTimeout } from 'node:timers';

import type { Benchmark, Contender, Peer, Round, Setup } from './benchmark.js';
import { PeerAbsent } from './peers/program.js';
import { type SharedProcessor, shareProcessor } from './processor.js';
import { type Summary, summarise } from './statistics.js';

/** The time in seconds after which a round counts as hanging. */
const LIMIT = 90;

export interface MeasuredPeer {
  readonly peer: Peer;
  readonly summary?: Summary;
  readonly notes?: Readonly<Record<string, number>>;
  readonly versions: Readonly<Record<string, string>>;
  /** The reason for a missing summary. */
  readonly problem?: string;
}

export interface Measured {
  readonly benchmark: Benchmark;
  readonly ours: Summary;
  /** The notes of our last round. */
  readonly notes: Readonly<Record<string, number>>;
  readonly peers: readonly MeasuredPeer[];
}

/** A contender as it goes from round to round. */
class Entrant {
  readonly rounds: Round[] = [];
  problem: string | undefined;
  versions: Readonly<Record<string, string>> = {};
  contender: Contender | undefined;
  /** The process of a peer in a process of its own. */
  pid: number | undefined;

  async start(peer: Peer, setup: Setup): Promise<void> {
    try {
      if ('program' in peer) {
        const program = await setup.programs.get(peer.program);
        const request = await peer.request(setup);
        this.versions = program.versions;
        this.pid = program.pid;
        this.contender = { round: () => program.round(request) };
      } else this.contender = await peer.start(setup);
    } catch (error) {
      if (!(error instanceof PeerAbsent)) throw error;
      this.problem = `absent: ${error.message}`;
    }
  }

  /** A peer that fails is left out; the others go on. */
  async round(counts: boolean, limit: number): Promise<void> {
    if (this.contender === undefined || this.problem !== undefined) return;
    try {
      const round = await inTime(this.contender.round(), limit);
      if (counts) this.rounds.push(round);
    } catch (error) {
      this.problem = `failed: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
}

export async function measure(benchmark: Benchmark, setup: Setup): Promise<Measured> {
  const count = Math.min(benchmark.rounds ?? 9, setup.quick ? 3 : Infinity);
  const limit = benchmark.limit ?? LIMIT;
  const rounds: Round[] = [];
  const possible = benchmark.peers.filter(
    (peer) => !('program' in peer) || setup.programs.possible(peer.program),
  );
  const entrants = possible.map((peer) => ({ peer, entrant: new Entrant() }));
  const ours = await inTime(benchmark.start(setup));
  let shared: SharedProcessor | undefined;
  const close = async (): Promise<unknown> => {
    shared?.giveBack();
    const contenders = [ours, ...entrants.map(({ entrant }) => entrant.contender)];
    return inTime(Promise.all(contenders.map(async (contender) => contender?.close?.())));
  };
  try {
    for (const { peer, entrant } of entrants) await entrant.start(peer, setup);
    if (benchmark.caller !== undefined) {
      const peers = entrants.flatMap(({ entrant: { pid } }) => pid ?? []);
      shared = await shareProcessor(benchmark.caller, peers, () => inTime(ours.round(), limit));
    }
    if (benchmark.warmUp !== false) {
      await inTime(ours.round(), limit);
      for (const { entrant } of entrants) await entrant.round(false, limit);
    }
    for (let round = 0; round < count; round++) {
      shared?.choose();
      const turn = [
        async () => rounds.push(await inTime(ours.round(), limit)),
        ...entrants.map(
          ({ entrant }) =>
            () =>
              entrant.round(true, limit),
        ),
      ];
      for (const take of round % 2 === 0 ? turn : turn.reverse()) await take();
    }
  } catch (error) {
    // The first failure is reported; failures of closing after it are not.
    await close().catch(() => undefined);
    throw error;
  }
  await close();
  return {
    benchmark,
    ours: summarise(rounds, benchmark.statistic),
    notes: {
      ...rounds.at(-1)?.notes,
      ...(shared === undefined ? {} : { 'all on processor': shared.processor }),
    },
    peers: entrants.map(({ peer, entrant: { rounds, problem, versions } }) => {
      if (problem !== undefined) return { peer, versions, problem };
      return {
        peer,
        versions,
        summary: summarise(rounds, benchmark.statistic),
        notes: rounds.at(-1)?.notes ?? {},
      };
    }),
  };
}

async function inTime<T>(promise: Promise<T>, seconds = LIMIT): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${seconds} s`)), 1000 * seconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
