/**
 * The output of a run: a report with all measurements, and the latest row of each benchmark in
 * bench/results/summary.json.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Machine } from './machine.js';
import type { DetailedRow, Row } from './rows.js';

const RESULTS = new URL('./results/', import.meta.url);
const SUMMARY = new URL('summary.json', RESULTS);

export interface Failure extends Pick<Row, 'name' | 'device'> {
  readonly message: string;
}

export interface Report {
  readonly date: string;
  /** Whether it was a run with --quick: for a first look, not for the record. */
  readonly quick: boolean;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: readonly DetailedRow[];
  /** Benchmarks that gave no value, where, and why. */
  readonly failures: readonly Failure[];
}

export async function writeReport(path: string, report: Report): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, json(report));
}

export async function readReport(path: string): Promise<Report> {
  return JSON.parse(await readFile(path, 'utf8')) as Report;
}

/**
 * Puts the report into bench/results/ and its rows into summary.json. Returns the report's path.
 */
export async function record(report: Report): Promise<string> {
  if (report.quick)
    throw new Error('a run with --quick is not for the record: run it again without');
  const device = (report.machine.gpu ?? 'cpu').toLowerCase().replace(/[^a-z0-9]+/g, '-');
  // To the minute: a day's later runs may measure other rows. Two of one minute are one.
  const path = fileURLToPath(
    new URL(`${report.date.slice(0, 16).toLowerCase().replace(':', '')}-${device}.json`, RESULTS),
  );
  await writeReport(
    path,
    existsSync(path)
      ? { ...report, rows: [...(await readReport(path)).rows, ...report.rows] }
      : report,
  );
  await writeFile(SUMMARY, json(merge(withoutFailed(await readSummary(), report), report.rows)));
  return path;
}

/**
 * Older rows of a benchmark that gave no value on a device are dropped: they would be those of
 * another program.
 */
export function withoutFailed(
  summary: readonly Row[],
  { date, failures }: Pick<Report, 'date' | 'failures'>,
): Row[] {
  return summary.filter(
    (row) =>
      row.date > date ||
      !failures.some(({ name, device }) => name === row.name && device === row.device),
  );
}

/**
 * The latest row of each area, name, device and peer, sorted. Rows of absent peers leave older ones
 * in place.
 */
export function merge(summary: readonly Row[], rows: readonly Row[]): Row[] {
  const latest = new Map<string, Row>();
  for (const row of [...summary, ...rows]) {
    if (row.peer !== null && row.peerValue === null) continue;
    const key = keyOf(row);
    const known = latest.get(key);
    if (known === undefined || known.date <= row.date) latest.set(key, summaryRow(row));
  }
  return [...latest.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

function keyOf({ area, name, device, peer }: Row): string {
  return [area, name, device, peer ?? ''].join('\n');
}

/** Four significant digits: more would be noise. */
function summaryRow({
  area,
  name,
  device,
  value,
  unit,
  peer,
  peerValue,
  ratio,
  bar,
  date,
  versions,
}: Row): Row {
  const round = (number: number): number => Number(number.toPrecision(4));
  return {
    area,
    name,
    device,
    value: round(value),
    unit,
    peer,
    peerValue: peerValue === null ? null : round(peerValue),
    ratio: ratio === null ? null : round(ratio),
    bar,
    date,
    versions,
  };
}

async function readSummary(): Promise<Row[]> {
  try {
    return JSON.parse(await readFile(SUMMARY, 'utf8')) as Row[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
