/**
 * Pairs of devices for tests of copies and waits between them: two CPU devices on threads of their
 * own or on the test's thread; on a GPU machine two GPUs where there are two, one GPU driven from
 * two threads, and a GPU and a CPU device.
 */
import { CoreDevice } from 'async-cuda/core';
import type { CudaError, DeviceName, Module } from 'async-cuda/core';
import { afterAll, afterEach, beforeAll, describe, expect } from 'vitest';

import { onCpu } from './test-device.js';
import type { Mode } from './test-device.js';
import { tagsOf } from '../random-runs.js';

interface End {
  readonly name: DeviceName;
  readonly mode: Mode;
}

const end = (name: DeviceName, mode: Mode = 'worker'): End => ({ name, mode });

const gpus = onCpu ? 0 : (await CoreDevice.list()).filter(({ kind }) => kind === 'cuda').length;

/** Source and target. */
const PAIRS: readonly (readonly [End, End])[] = onCpu
  ? [
      [end('cpu:0'), end('cpu:1')],
      [end('cpu:0', 'inline'), end('cpu:1')],
      [end('cpu:0'), end('cpu:1', 'inline')],
      [end('cpu:0', 'inline'), end('cpu:1', 'inline')],
    ]
  : [
      [end('cuda:0'), end('cuda:1')],
      [end('cuda:0'), end('cuda:0', 'inline')],
      [end('cuda:0'), end('cpu:0')],
      [end('cpu:0'), end('cuda:0')],
    ];

export class DevicePair {
  readonly title: string;
  /** Whether copies between the two bypass the host. */
  readonly alike: boolean;
  readonly errors: CudaError[] = [];
  private readonly ends: readonly [End, End];
  private opened: [CoreDevice, CoreDevice] | undefined;
  private readonly modules = new Map<string, Promise<Module>>();

  constructor(ends: readonly [End, End]) {
    this.ends = ends;
    this.title = ends.map(({ name, mode }) => `${name} ${mode}`).join(', ');
    this.alike = ends[0].name.slice(0, 3) === ends[1].name.slice(0, 3);
  }

  get a(): CoreDevice {
    return this.opened![0];
  }

  get b(): CoreDevice {
    return this.opened![1];
  }

  load(device: CoreDevice, ptx: string): Promise<Module> {
    const key = `${device === this.a ? 'a' : 'b'}${ptx}`;
    const module = this.modules.get(key) ?? device.loadModule(ptx);
    this.modules.set(key, module);
    return module;
  }

  async openAnew(): Promise<[CoreDevice, CoreDevice]> {
    const devices = await Promise.all(
      this.ends.map(({ name, mode }) => CoreDevice.open(name, { thread: mode })),
    );
    for (const device of devices) device.on('error', (error) => this.errors.push(error));
    return devices as [CoreDevice, CoreDevice];
  }

  async open(): Promise<void> {
    this.opened = await this.openAnew();
  }

  async close(): Promise<void> {
    await Promise.all(this.opened!.map((device) => device.close()));
  }
}

/** Declares `body`'s tests once for each pair that the machine has; `npm test` takes the first. */
export function onPairs(title: string, body: (pair: DevicePair) => void): void {
  const isMissing = (ends: readonly End[]): boolean =>
    gpus < 2 && ends.some(({ name }) => name === 'cuda:1');
  const there = PAIRS.filter((ends) => !isMissing(ends));
  for (const ends of PAIRS) {
    const pair = new DevicePair(ends);
    const missing = isMissing(ends);
    describe.skipIf(missing)(
      `${title} (${pair.title}${missing ? ': skipped, there is one GPU' : ''})`,
      { tags: tagsOf(there, ends, 1) },
      () => {
        beforeAll(() => pair.open());
        afterAll(() => pair.close());
        afterEach(() => {
          const unheard = pair.errors.splice(0).map((error) => error.message);
          expect(unheard.join('\n'), 'failures that were not awaited').toBe('');
        });
        body(pair);
      },
    );
  }
}
