/**
 * What is done for an allocation that found too little memory, before it is tried again and fails; and what an idle
 * device gives back.
 */
import { clearTimeout, setTimeout } from 'node:timers';

import { FLAG_BYPASS } from '../runtime/commands.js';
import type { RoomStep } from '../runtime/decoder.js';
import type { Runtime } from '../runtime/runtime.js';
import type { Device } from './device.js';
import type { Stream } from './stream.js';

/** Milliseconds without one free coming to its turn after which memory is taken to be used up: a kernel may run for ever. */
const PATIENCE_MS = 1000;

/** Takes one step. `slot` is the slot of the stream whose allocation waits. cuMemPoolTrimTo */
export async function makeRoom(runtime: Runtime, devices: ReadonlySet<Device>, step: RoomStep, slot: number): Promise<void> {
  if (step === 'trim') await runtime.call('trimPools', runtime.info.device, [...devices].flatMap((device) => device.poolHandles()));
  else await frees([...devices].flatMap((device) => device.freeingStreams()), slot);
}

/** Waits for frees that are queued, as long as one after the other comes to its turn. */
async function frees(streams: readonly Stream[], slot: number): Promise<void> {
  const waits = new Set<Promise<unknown>>();
  for (const stream of streams) {
    const { runtime } = stream;
    // What is queued behind the allocation that waits will not be done before it: only what is in front of it counts.
    const passed = stream.slot.index === slot
      ? runtime.completion.wait(stream.transferSlot, runtime.fence(stream.transferSlot, slot, FLAG_BYPASS), slot)
      : stream.passed(stream.lastFree);
    runtime.completion.bystanders.add(passed);
    const wait: Promise<unknown> = passed.then(() => waits.delete(wait), () => waits.delete(wait));
    waits.add(wait);
  }
  for (let patient = true; patient && waits.size > 0; ) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const impatience = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, PATIENCE_MS, false);
    });
    patient = (await Promise.race([...waits, impatience])) !== false;
    clearTimeout(timer);
  }
}
