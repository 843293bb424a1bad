/** The table that a run prints, row by row as they come. */
import type { DetailedRow } from './rows.js';

const WIDTHS = [52, 12, 19, 16, 9, 8, 10, 6];
const TITLES = ['', 'ours', 'min … p90', 'peer', 'its', 'ratio', 'bar', ''];

export function heading(): string {
  return `${line(TITLES)}\n${'─'.repeat(WIDTHS.reduce((a, b) => a + b))}`;
}

/** The rows of one benchmark. Columns that do not change from row to row are written once. */
export function lines(rows: readonly DetailedRow[]): string {
  const notes: string[] = [];
  const shown = rows.map((row, i) => {
    if (i === 0) notes.push(...notesOf('', row.notes));
    notes.push(...notesOf(`${row.peer ?? ''}: `, row.peerNotes));
    if (row.problem?.startsWith('failed') === true) notes.push(`${row.peer}: ${row.problem}`);
    const first = [
      i === 0 ? row.name : '',
      `${digits(row.value)} ${row.unit}`,
      i === 0 ? `${digits(row.ours.min)} … ${digits(row.ours.p90)}` : '',
    ];
    const theirs =
      row.peerValue === null ? (row.problem?.split(':')[0] ?? '') : digits(row.peerValue);
    return line([
      ...first,
      row.peer ?? '',
      theirs,
      row.ratio === null ? '' : row.ratio.toFixed(3),
      row.bar ?? '',
      mark(row),
    ]);
  });
  return [...shown, ...notes.map((note) => `      ${note}`)].join('\n');
}

function mark({ pass }: DetailedRow): string {
  return pass === null ? '' : pass ? 'ok' : 'MISSED';
}

function notesOf(whose: string, notes: Readonly<Record<string, number>>): string[] {
  const entries = Object.entries(notes);
  return entries.length === 0
    ? []
    : [whose + entries.map(([name, value]) => `${name} ${digits(value)}`).join(', ')];
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) =>
      i === 0 || i === 3 ? cell.padEnd(WIDTHS[i]!) : `${cell.padStart(WIDTHS[i]! - 2)}  `,
    )
    .join('')
    .trimEnd();
}

/** Three significant digits, no exponent. */
export function digits(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return value.toFixed(0);
  return value.toFixed(Math.max(0, Math.min(4, 2 - Math.floor(Math.log10(Math.abs(value))))));
}
