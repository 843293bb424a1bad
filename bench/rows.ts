/**
 * Rows: one for each peer of a benchmark, and one of our own value where that has a bar or there is
 * no peer. These are the rows of the table, of a run's report, and of bench/results/summary.json.
 */
import type { Area, Bar, Unit } from './benchmark.js';
import type { Measured } from './measure.js';
import { type Summary, meets, pair } from './statistics.js';

/** A row of summary.json. */
export interface Row {
  readonly area: Area;
  readonly name: string;
  readonly device: string;
  readonly value: number;
  readonly unit: Unit;
  readonly peer: string | null;
  readonly peerValue: number | null;
  /** Ours by the peer's. */
  readonly ratio: number | null;
  /** The bar of the ratio where there is one, else of the value. */
  readonly bar: Bar | null;
  readonly date: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** A row with all measurements. */
export interface DetailedRow extends Row {
  /** Whether the bar is met; null where there is none. */
  readonly pass: boolean | null;
  readonly ours: Summary;
  readonly theirs: Summary | null;
  readonly notes: Readonly<Record<string, number>>;
  readonly peerNotes: Readonly<Record<string, number>>;
  /** The reason for a missing value of the peer. */
  readonly problem: string | null;
}

export interface Context {
  readonly device: string;
  readonly date: string;
  readonly versions: Readonly<Record<string, string>>;
  /** Whether bars apply here: those of the runtime are for a GPU. */
  readonly bars: boolean;
}

export function rowsOf(
  { benchmark, ours, notes, peers }: Measured,
  context: Context,
): DetailedRow[] {
  const { area, name, unit } = benchmark;
  const { device, date, versions } = context;
  const base = { area, name, device, value: ours.value, unit, date, ours, notes };
  const rows: DetailedRow[] = [];
  if (benchmark.bar !== undefined || !peers.some(({ summary }) => summary !== undefined)) {
    const bar = context.bars ? (benchmark.bar ?? null) : null;
    rows.push({
      ...base,
      peer: null,
      peerValue: null,
      ratio: null,
      bar,
      versions: { ...versions },
      pass: bar === null ? null : meets(bar, ours.value),
      theirs: null,
      peerNotes: {},
      problem: null,
    });
  }
  for (const {
    peer,
    summary,
    notes: peerNotes = {},
    versions: peerVersions,
    problem = null,
  } of peers) {
    const { value, peerValue, ratio } =
      summary === undefined
        ? { value: ours.value, peerValue: null, ratio: null }
        : pair(ours, summary, benchmark.statistic);
    const bar = context.bars ? (peer.bar ?? null) : null;
    rows.push({
      ...base,
      value,
      peer: peer.name,
      peerValue,
      ratio,
      bar,
      versions: { ...versions, ...peerVersions },
      pass: bar === null || ratio === null ? null : meets(bar, ratio),
      theirs: summary ?? null,
      peerNotes,
      problem,
    });
  }
  return rows;
}
