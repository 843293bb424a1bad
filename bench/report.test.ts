import { expect, it } from 'vitest';

import { merge, withoutFailed } from './report.js';
import type { Row } from './rows.js';

function row(changes: Partial<Row> = {}): Row {
  return {
    area: 'runtime',
    name: 'launch',
    device: 'NVIDIA H200',
    value: 8.123456,
    unit: 'µs',
    peer: 'C',
    peerValue: 8,
    ratio: 1.015432,
    bar: '<= 1.05',
    date: '2026-11-20',
    versions: {},
    ...changes,
  };
}

it('keeps the latest row of each area, name, device and peer', () => {
  const merged = merge([row(), row({ peer: 'CuPy' })], [row({ date: '2026-11-21', value: 7 })]);
  expect(merged.map(({ peer, value }) => [peer, value])).toEqual([
    ['C', 7],
    ['CuPy', 8.123],
  ]);
});

it('does not let an older report replace a newer row', () => {
  expect(merge([row({ date: '2026-11-21', value: 7 })], [row()])[0]?.value).toBe(7);
});

it("keeps a peer's older row where the peer was absent", () => {
  expect(merge([row()], [row({ date: '2026-11-21', peerValue: null, ratio: null })])).toHaveLength(
    1,
  );
  expect(merge([], [row({ peerValue: null, ratio: null })])).toEqual([]);
});

it('keeps rows without a peer', () => {
  expect(merge([], [row({ peer: null, peerValue: null, ratio: null })])).toHaveLength(1);
});

it('drops fields that only the report has', () => {
  const detailed = { ...row(), pass: true, notes: { a: 1 } };
  expect(Object.keys(merge([], [detailed])[0]!)).toEqual(Object.keys(row()));
});

it('drops the older rows of a benchmark that failed on that device', () => {
  const kept = [row({ name: 'copy' }), row({ device: 'NVIDIA H100' }), row({ date: '2026-11-22' })];
  const failures = [{ name: 'launch', device: 'NVIDIA H200', message: 'refused' }];
  expect(withoutFailed([row(), ...kept], { date: '2026-11-21', failures })).toEqual(kept);
  const onCpu = [{ name: 'launch', device: 'cpu: a processor', message: 'refused' }];
  expect(withoutFailed(kept, { date: '2026-11-23', failures: onCpu })).toEqual(kept);
});
