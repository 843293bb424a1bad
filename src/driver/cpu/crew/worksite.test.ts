import { expect, test } from 'vitest';
import { CTX, STATUS, TEAM } from '../../../ptx/index.js';
import { clusterWord } from '../kernels/cluster.js';
import { ENTRY, HELD, JOB, WORD, controlBytes, entryAt, jobAt } from './control.js';
import { Worksite } from './worksite.js';

const PAGE = 65536;
const STRIDE = 512;

/** A team of this many blocks across the end of the memory of the thread's start. */
function teamAcrossTheEnd(
  blocks: number,
  held: number,
): { site: Worksite; view: Int32Array; first: number } {
  const words = new Int32Array(new SharedArrayBuffer(controlBytes(1)));
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
  const site = new Worksite(
    words,
    0,
    memory,
    () => undefined,
    () => 0,
  );
  memory.grow(1);
  const view = new Int32Array(memory.buffer);
  const head = PAGE - TEAM.bytes - STRIDE;
  view[(head + CTX.cluster) >>> 2] = clusterWord({ x: blocks, y: 1, z: 1, blocks });
  view[(head + CTX.clusterStride) >>> 2] = STRIDE;
  view[(head + TEAM.first) >>> 2] = TEAM.bytes;
  const at = jobAt(0);
  Object.entries({
    total: 2,
    gridX: 2,
    gridY: 1,
    most: 1,
    least: 1,
    parts: 1,
    strip: 2,
    held,
  }).forEach(([name, value]) => {
    words[at + JOB[name as keyof typeof JOB]] = value;
  });
  words[at + JOB.next] = 1;
  words[at + JOB.finished] = 1;
  words[entryAt(1) + ENTRY.address] = head;
  site.giveBack(at, 1);
  return { site, view, first: head + TEAM.bytes };
}

const stay = { leave: (): boolean => false, over: (): boolean => false };

test('the blocks of a team that lies across the end of what was memory have their places', () => {
  const { site, view, first } = teamAcrossTheEnd(4, HELD.team);
  const places: number[] = [];
  site.work(
    0,
    () => {
      for (let rank = 0; rank < 4; rank++)
        places.push(view[(first + rank * STRIDE + CTX.ctaid) >>> 2]!);
      return STATUS.done;
    },
    stay,
    () => undefined,
  );
  expect(places).toEqual([4, 5, 6, 7]);
});

test('so do those of a cluster, and each gets the end of memory', () => {
  const { site, view } = teamAcrossTheEnd(4, HELD.cluster);
  site.words[WORD.top] = 2 * PAGE;
  const told: number[][] = [];
  site.work(
    0,
    site.clusterRun((address) => {
      told.push([view[(address + CTX.ctaid) >>> 2]!, view[(address + CTX.memoryTop) >>> 2]!]);
      return STATUS.done;
    }),
    stay,
    () => undefined,
  );
  expect(told).toEqual([4, 5, 6, 7].map((place) => [place, 2 * PAGE]));
});
