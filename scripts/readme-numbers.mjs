/**
 * Writes the tables of numbers of README.md, docs/numbers.md and docs/images.md from
 * bench/results/summary.json: `node scripts/readme-numbers.mjs`. With `--check` it changes nothing
 * and exits with status 1 where a table differs from what it would write.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const README = fileURLToPath(new URL('../README.md', import.meta.url));
const NUMBERS = fileURLToPath(new URL('../docs/numbers.md', import.meta.url));
const IMAGES = fileURLToPath(new URL('../docs/images.md', import.meta.url));
const SUMMARY = fileURLToPath(new URL('../bench/results/summary.json', import.meta.url));

/** The rows of the README. */
const TEN = [
  'launch, time of the JS thread, bursts of 500',
  'launch then await, hot',
  '20,000 launches, each until done',
  'graph of 100 kernels, replay until done',
  'copy to the device, typed array, 256 MiB',
  'longest event-loop stall, GPU saturated',
  'softmax of 8192 rows of 4096, in TypeScript',
  'matrix product 4096³ of f16, in TypeScript',
  'classification of 1000 photographs, from JPEG files, batches of 32',
  'tiled sgemm of 512³',
];

/**
 * The peer that a benchmark's own bar names, else the first that it has; the others are listed
 * below the table. Kernels have a bar for each.
 */
const FIRST_PEERS = ['C', 'itself without', null];
const OTHERS = { name: '20,000 launches, each until done', what: 'The same 20,000 launches' };

const number = (value) => String(Number(value.toPrecision(3)));
const sign = (bar) => bar.replace('<=', '≤').replace('>=', '≥');

function meets({ bar, ratio, value }) {
  const [, comparison, limit] = /^(<=|>=) (.+)$/.exec(bar);
  const judged = ratio ?? value;
  return comparison === '<=' ? judged <= Number(limit) : judged >= Number(limit);
}

/** NVIDIA H100 80GB HBM3 → H100 */
const shortName = (device) => device.replace(/^NVIDIA /, '').split(' ')[0];

/** A row of the table. `main` is the GPU that most rows were measured on. */
function tableRow(row, main) {
  const name =
    row.area === 'cpu-device'
      ? `${row.name} (CPU device)`
      : row.device === main
        ? row.name
        : `${row.name} (${shortName(row.device)})`;
  const peer =
    row.peerValue === null
      ? ''
      : `${number(row.peerValue)} ${row.unit}${row.peer === 'C' ? '' : ` (${row.peer})`}`;
  const ratio = row.ratio === null ? '' : String(Number(row.ratio.toPrecision(4)));
  return (
    `| ${name} | ${number(row.value)} ${row.unit} | ${peer} | ${ratio} | ${sign(row.bar)} | ` +
    `${meets(row) ? 'met' : 'missed'} |`
  );
}

/** For each name the rows of the GPU, or of the processor, that it was measured on last. */
function latestDevices(rows) {
  return rows.filter((row) => {
    const same = rows.filter(({ area, name }) => area === row.area && name === row.name);
    return same.reduce((a, b) => (a.date < b.date ? b : a)).device === row.device;
  });
}

/** The table of all rows that have a bar, or of those of the given names. */
function numbers(summary, names) {
  const barred = latestDevices(summary.filter(({ bar }) => bar !== null));
  const shown = [];
  for (const { area, name } of barred) {
    if (names !== undefined && !names.includes(name)) continue;
    if (shown.some((row) => row.area === area && row.name === name)) continue;
    const rows = barred.filter((row) => row.area === area && row.name === name);
    if (area === 'kernels' && names === undefined) shown.push(...rows);
    else
      shown.push(
        FIRST_PEERS.map((peer) => rows.find((row) => row.peer === peer)).find(
          (row) => row !== undefined,
        ) ?? rows[0],
      );
  }
  shown.sort((a, b) => Number(a.area === 'cpu-device') - Number(b.area === 'cpu-device'));
  const onGpus = shown.filter(({ area }) => area !== 'cpu-device');
  const devices = [...new Set(onGpus.map(({ device }) => device))];
  const count = (device) => onGpus.filter((row) => row.device === device).length;
  const main = devices.reduce((a, b) => (count(a) < count(b) ? b : a));
  const dates = (device) =>
    [
      ...new Set(
        summary
          .filter((row) => row.area !== 'cpu-device' && row.device === device)
          .map(({ date }) => date.slice(0, 10)),
      ),
    ]
      .sort()
      .join(', ');
  const latest = summary
    .filter(({ device }) => device === main)
    .reduce((a, b) => (a.date < b.date ? b : a));
  const further = devices
    .filter((device) => device !== main)
    .map(
      (device) =>
        ` Rows with ${shortName(device)} were measured on an ${device}, ${dates(device)}.`,
    )
    .join('');
  const versions = Object.entries(latest.versions)
    .filter(([name]) => ['node', 'koffi', 'cuda'].includes(name))
    .map((pair) => pair.join(' '))
    .join(', ');
  const others = summary.filter(({ name, peer }) => name === OTHERS.name && peer !== 'C');
  const valueOf = ({ peer, peerValue, unit }) => `${peer} ${number(peerValue)} ${unit}`;
  const table = [
    '| | async-cuda | CUDA driver from C, or the peer that is named | ratio | goal | |',
    '|---|---|---|---|---|---|',
    ...shown.map((row) => tableRow(row, main)),
    '',
  ];
  if (names !== undefined) return [`On an ${main}:`, '', ...table].join('\n');
  return [
    `On an ${main} (${versions}), ${dates(main)}.${further}`,
    '',
    ...table,
    `${OTHERS.what}: ` + `${others.map(valueOf).join(', ')} ` + 'each.',
    '',
  ].join('\n');
}

const ALL = 'all';
const USUAL = 'u8, u16, f32';
/**
 * Operations as bench/images/operations.ts names them, the dtypes that our kernels and NPP take,
 * and the operation's name in the library where it differs.
 */
const OPERATIONS = [
  ...['nearest', 'linear', 'cubic', 'lanczos3', 'area'].map((filter) => [
    `resize, ${filter}`,
    ALL,
    ALL,
  ]),
  ['letterbox', ALL, USUAL],
  ['mirror', ALL, USUAL],
  ['rotateQuarters', ALL, ALL],
  ['copyBorder', ALL, USUAL],
  ['warpAffine', ALL, USUAL],
  ['warpPerspective', ALL, USUAL],
  ['convertColor to grey', ALL, USUAL],
  ['convertColor to HSV', ALL, 'u8'],
  ['rgbToYuv', 'u8', 'u8'],
  ['orderChannels', ALL, ALL],
  ['addAlpha', ALL, USUAL],
  ['toPlanar', ALL, ALL],
  ['rescale to f32', ALL, ALL],
  ['normalise to f16', ALL, ALL],
  ['letterboxNormalise', ALL, '–'],
  ['add', ALL, ALL, 'addImages'],
  ['threshold', ALL, USUAL],
  ['blend', ALL, 'u8, u16, f32; premultiplied'],
  ['gaussianFilter', ALL, `${USUAL}; border replicate; no u8 of one channel`],
  ['boxFilter', ALL, `${USUAL}; border replicate`],
  ['sobel', ALL, '–'],
  ['channelSums', ALL, USUAL],
  ['channelExtremes', ALL, 'u16, f32'],
  ['channelHistogram', ALL, 'u8, u16; to the greatest value'],
];

/** The table for an image of 1920 × 1080, on a GPU; a cell without a measurement is empty. */
export function imageTable(summary) {
  const measured = (name, peer) =>
    summary.find(
      (row) =>
        row.area === 'images' &&
        row.name === `${name}, 1920 × 1080 RGB` &&
        !row.device.startsWith('cpu') &&
        row.peer === peer,
    );
  const ms = (value) => (value === undefined || value === null ? '' : `${number(value)} ms`);
  return [
    '| operation | our kernels take | NPP takes | our kernels | NPP |',
    '|---|---|---|---|---|',
    ...OPERATIONS.map(([name, own, npp, called = name]) => {
      const beside = measured(name, 'NPP');
      const [operation] = called.split(/,? /);
      return (
        `| \`${operation}\`${called.slice(operation.length)} | ${own} | ` +
        `${npp} | ${ms((beside ?? measured(name, null))?.value)} | ${ms(beside?.peerValue)} |`
      );
    }),
    '',
  ].join('\n');
}

const summary = JSON.parse(await readFile(SUMMARY, 'utf8'));
for (const [path, marks, table] of [
  [README, 'ten numbers', numbers(summary, TEN)],
  [NUMBERS, 'numbers', numbers(summary)],
  [IMAGES, 'numbers', imageTable(summary)],
]) {
  const text = await readFile(path, 'utf8');
  const mark = `<!-- ${marks}:begin, from bench/results -->\n`;
  const begin = text.indexOf(mark) + mark.length;
  const end = text.indexOf(`<!-- ${marks}:end -->`);
  const file = relative(ROOT, path);
  if (begin < mark.length || end < begin)
    throw new Error(`${file} lacks the marks around its numbers`);
  const wanted = text.slice(0, begin) + table + text.slice(end);
  if (wanted === text) continue;
  if (process.argv.includes('--check')) {
    console.error(
      `${file} does not show bench/results/summary.json: run node scripts/readme-numbers.mjs`,
    );
    process.exitCode = 1;
  } else await writeFile(path, wanted);
}
