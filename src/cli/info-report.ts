/** The {@link Info} of a machine as Markdown for a bug report. */
import { homedir } from 'node:os';

import { describeCache } from './cache.js';
import { gibibytes } from './device-rows.js';
import type { EngineFeatures } from './engine-features.js';
import type { Info, LibraryInfo, Problem } from './info.js';

const FEATURE_NAMES: Readonly<Record<keyof EngineFeatures, string>> = {
  wasmSimd: 'WebAssembly SIMD',
  wasmThreads: 'WebAssembly threads',
  wasmRelaxedSimd: 'WebAssembly relaxed SIMD',
  wasmRelaxedMaddFused: 'relaxed multiply-add is fused',
  wasmMemory64: 'WebAssembly memory64',
  float16Array: 'Float16Array',
  atomicsWaitAsync: 'Atomics.waitAsync',
};

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

function problemText({ message, tried }: Problem): string {
  if (tried === undefined || tried.length === 0) return message;
  return `${message}\n\n<details><summary>${tried.length} paths tried</summary>\n\n${tried
    .map(({ path, reason }) => `- \`${path}\`: ${reason}`)
    .join('\n')}\n\n</details>`;
}

function machine(info: Info): string {
  const { node, system, cpu, koffi, driver } = info;
  const rows = [
    ['Node', `${node.version} (V8 ${node.v8}), ${node.platform} ${node.arch}`],
    ['system', `${system.release}, ${system.version}`],
    ['CPU', `${cpu.model}, ${cpu.cores} cores, ${gibibytes(cpu.memoryBytes)}`],
    ['koffi', 'problem' in koffi ? koffi.problem.message : `${koffi.version}, ${koffi.path}`],
  ];
  if ('problem' in driver) rows.push(['driver', 'none']);
  else {
    const { cuda, kernelModule } = driver;
    rows.push([
      'driver',
      `CUDA ${cuda}${kernelModule === undefined ? '' : `, kernel module ${kernelModule}`}`,
    ]);
    if (driver.path !== undefined) rows.push(['driver library', driver.path]);
  }
  rows.push(['compiled code', describeCache(info.cache ?? undefined)]);
  for (const [name, value] of Object.entries(info.environment)) rows.push([name, value]);
  return table(['', ''], rows);
}

function devices({ devices: found }: Info): string {
  if (found.length === 0) return 'None.';
  const properties = Object.keys(found[0]!.properties);
  return table(
    ['', ...found.map(({ id }) => id)],
    [
      ['name', ...found.map(({ name }) => name)],
      ...properties.map((property) => [
        property,
        ...found.map((device) => device.properties[property] ?? ''),
      ]),
    ],
  );
}

function placeOf({ path = '', version }: LibraryInfo): string {
  if (version === undefined) return path;
  return `${path}, ${typeof version === 'string' ? version : version.problem.message}`;
}

function libraries(info: Info): string {
  const found = info.libraries.filter(({ path }) => path !== undefined);
  const missing = info.libraries.filter(({ path }) => path === undefined);
  const parts = [];
  if (found.length > 0)
    parts.push(
      table(
        ['', ''],
        found.map((library) => [library.name, placeOf(library)]),
      ),
    );
  if (missing.length > 0)
    parts.push(
      'Not found: ' +
        missing.map(({ name, pathsTried }) => `${name} (${pathsTried} paths tried)`).join(', ') +
        '.',
    );
  return parts.join('\n\n');
}

export function formatInfo(info: Info): string {
  const sections = [`### async-cuda ${info.asyncCuda}`, machine(info)];
  const problems = [...('problem' in info.driver ? [info.driver.problem] : []), ...info.problems];
  if (problems.length > 0) sections.push('#### Problems', problems.map(problemText).join('\n\n'));
  sections.push('#### Devices', devices(info));
  sections.push(
    '#### JavaScript engine',
    table(
      ['', ''],
      Object.entries(FEATURE_NAMES).map(([key, name]) => [
        name,
        info.features[key as keyof EngineFeatures] ? 'yes' : 'no',
      ]),
    ),
  );
  sections.push('#### Libraries', libraries(info));
  const text = `${sections.join('\n\n')}\n`;
  // Reports are published, and the home folder's name is mostly the user's. In a container it can
  // be `/`.
  const home = homedir();
  return home.length > 1 ? text.replaceAll(home, '~') : text;
}
