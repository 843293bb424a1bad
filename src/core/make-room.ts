/**
 * How memory is freed for an allocation that found too little, before it is tried again and fails;
 * and what an idle device returns to the driver.
 */
import { clearTimeout, setTimeout } from 'node:timers';

import { FLAG_BYPASS } from '../runtime/commands.js';
import type { RoomStep } from '../runtime/decoder/host.js';
import { CudaOutOfMemoryError } from '../ground/errors.js';
import type { Runtime } from '../runtime/runtime.js';
import type { CoreDevice } from './device.js';
import type { Stream } from './stream.js';

/** Milliseconds without a completed free after which the wait ends: a kernel may run for ever. */
const PATIENCE_MS = 1000;
/** The slot of an allocation that no stream waits for. */
const NO_SLOT = -1;

/** Takes one step. `slot` is the slot of the stream whose allocation waits. cuMemPoolTrimTo */
export async function makeRoom(
  runtime: Runtime,
  devices: ReadonlySet<CoreDevice>,
  step: RoomStep,
  slot: number,
): Promise<void> {
  if (step === 'trim')
    await runtime.call(
      'trimPools',
      runtime.info.device,
      [...devices].flatMap((device) => device.objects.poolHandles()),
    );
  else await frees([...devices], slot);
}

/**
 * Allocates by a call that is not in stream order. Where there is too little memory, it tries once
 * more after both steps.
 */
export async function allocateByCall<T>(
  runtime: Runtime,
  devices: ReadonlySet<CoreDevice>,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof CudaOutOfMemoryError)) throw error;
  }
  try {
    for (const step of ['frees', 'trim'] as const) await makeRoom(runtime, devices, step, NO_SLOT);
  } catch {
    // The allocation fails again, and its error is thrown.
  }
  return call();
}

/** Waits for frees that are queued or under way, as long as one after the other completes. */
async function frees(devices: readonly CoreDevice[], slot: number): Promise<void> {
  const waits = new Set<Promise<unknown>>();
  for (const device of devices) device.makeRoomOfRecycled();
  for (const free of devices.flatMap((device) => [...device.objects.frees])) {
    const wait: Promise<unknown> = free.then(
      () => waits.delete(wait),
      () => waits.delete(wait),
    );
    waits.add(wait);
  }
  for (const stream of devices.flatMap((device): readonly Stream[] =>
    device.objects.freeingStreams(),
  )) {
    const { runtime } = stream;
    // Work after the waiting allocation is not done before it: only the work before it counts.
    const passed =
      stream.slot.index === slot
        ? runtime.completion.wait(
            stream.transferSlot,
            runtime.fence(stream.transferSlot, slot, FLAG_BYPASS),
            slot,
          )
        : stream.passed(stream.lastFree);
    runtime.completion.bystanders.add(passed);
    const wait: Promise<unknown> = passed.then(
      () => waits.delete(wait),
      () => waits.delete(wait),
    );
    waits.add(wait);
  }
  for (let patient = true; patient && waits.size > 0;) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const impatience = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, PATIENCE_MS, false);
    });
    patient = (await Promise.race([...waits, impatience])) !== false;
    clearTimeout(timer);
  }
}
