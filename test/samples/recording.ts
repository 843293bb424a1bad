/**
 * What a GPU gave, as `h200.json` holds it: written by the suite itself on a GPU with
 * ASYNC_CUDA_RECORD=FILE, and compared with wherever the file is there.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import type { CoreDevice } from 'async-cuda/core';

import { canonicalBytes, difference, formatOf, numbersOf } from './equality.js';
import type { HostArray, SampleCase, SampleOutput, Target } from './sample-case.js';

/** The values of outputs that need not be equal bit for bit are kept, up to this number. */
const MOST_VALUES = 4096;

interface RecordedOutput {
  /** f16, bf16, f32, f64, or the array of the integers. */
  dtype: string;
  length: number;
  /** The hash of the bytes, with canonical NaNs. */
  sha256: string;
}

export interface RecordedCase {
  /** The hash of all inputs of the case. */
  inputs: string;
  outputs: Record<string, RecordedOutput>;
}

export interface RecordedProgram {
  stdout: readonly string[];
  driverName: string | null;
}

export interface Recording {
  device: string;
  driver: string;
  /** Module, target, kernel, case. */
  cases: Record<string, Record<string, Record<string, Record<string, RecordedCase>>>>;
  /** By module, target and program. */
  programs: Record<string, Record<string, Record<string, RecordedProgram>>>;
  /** Base64 of the bytes whose SHA-256 is the key: targets that agree share them. */
  values: Record<string, string>;
}

const sha256 = (...parts: (Uint8Array | string)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};
const bytesOf = (values: HostArray): Uint8Array =>
  new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

/** The place of a nested object, made where it is missing. */
function at<T>(object: Record<string, T>, key: string, empty: T): T {
  return (object[key] ??= empty);
}

function digestOfInputs(sample: SampleCase): string {
  const arrays = Object.entries({ ...sample.memory, ...sample.variables });
  const launches = JSON.stringify(sample.launches, (_, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value,
  );
  return sha256(...arrays.flatMap(([name, values]) => [name, bytesOf(values)]), launches);
}

/** An output in the form that is recorded and compared. */
export function inNormalForm(values: HostArray, output: SampleOutput): HostArray {
  return output.normalForm?.(values as never) ?? values;
}

export function recordCase(
  recording: Recording,
  module: string,
  target: Target,
  sample: SampleCase,
  results: ReadonlyMap<string, HostArray>,
): void {
  const outputs: Record<string, RecordedOutput> = {};
  for (const [name, output] of Object.entries(sample.outputs)) {
    const values = inNormalForm(results.get(name)!, output);
    const format = formatOf(values, output.format);
    const bytes = canonicalBytes(values, format);
    const digest = sha256(bytes);
    outputs[name] = {
      dtype: format === 'integer' ? values.constructor.name : format,
      length: values.length,
      sha256: digest,
    };
    if (output.equal !== 'bits' && values.length <= MOST_VALUES)
      recording.values[digest] = Buffer.from(bytes).toString('base64');
  }
  const kernels = at(at(recording.cases, module, {}), target, {});
  at(kernels, sample.kernel, {})[sample.name] = { inputs: digestOfInputs(sample), outputs };
}

export function recordedCase(
  recording: Recording,
  module: string,
  target: Target,
  sample: SampleCase,
): RecordedCase | undefined {
  return recording.cases[module]?.[target]?.[sample.kernel]?.[sample.name];
}

/** What differs from what was recorded, a line for each output. */
export function compareWithRecorded(
  recording: Recording,
  recorded: RecordedCase,
  sample: SampleCase,
  results: ReadonlyMap<string, HostArray>,
): string[] {
  if (recorded.inputs !== digestOfInputs(sample))
    return [
      'the case has changed since it was recorded: record it again, or take it out of the ' +
        'recording',
    ];
  return Object.entries(sample.outputs).flatMap(([name, output]) => {
    const values = inNormalForm(results.get(name)!, output);
    const format = formatOf(values, output.format);
    const bytes = canonicalBytes(values, format);
    const before = recorded.outputs[name];
    if (before === undefined) return [`${name} was not recorded`];
    if (before.sha256 === sha256(bytes)) return [];
    const kept = recording.values[before.sha256];
    if (kept === undefined) return [`${name} is not bit-equal (only its SHA-256 was recorded)`];
    const Values = values.constructor as new (buffer: ArrayBuffer) => HostArray;
    const wanted = new Values(new Uint8Array(Buffer.from(kept, 'base64')).buffer);
    const said = difference(
      numbersOf(values, format),
      numbersOf(wanted, format),
      output.equal,
      format,
    );
    return said === undefined ? [] : [`${name}: ${said}`];
  });
}

export function emptyRecording(): Recording {
  return { device: '', driver: '', cases: {}, programs: {}, values: {} };
}

export function describeDevice(recording: Recording, device: CoreDevice): void {
  recording.device = device.name;
  recording.driver = device.properties.driverVersion;
}

const committed = fileURLToPath(new URL('h200.json', import.meta.url));

/** The result of an H200; undefined where it is not recorded. */
export const h200: Recording | undefined = existsSync(committed)
  ? (JSON.parse(readFileSync(committed, 'utf8')) as Recording)
  : undefined;
export const notRecorded =
  'test/samples/h200.json is not there: no GPU has recorded it yet (CONTRIBUTING.md, "On a GPU")';

/** Where to write what this run gives. */
export const recordFile = process.env['ASYNC_CUDA_RECORD'];

export function writeRecording(recording: Recording, file: string): void {
  writeFileSync(file, `${JSON.stringify(recording, null, 1)}\n`);
}
