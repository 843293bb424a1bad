/**
 * Opens a device: with a runtime thread, or inline, where the calling thread does all of the work.
 */
import { setImmediate } from 'node:timers';

import { CudaError } from '../../ground/errors.js';
import { Decoder } from '../decoder.js';
import { errorFromFailure } from '../error-of-failure.js';
import { expectOptimiser } from '../exit.js';
import { describeFailure } from '../failure.js';
import { allocateHost } from '../host-allocation.js';
import { largePages } from '../large-pages.js';
import {
  PINNED_BYTES,
  PINNED_SLACK_BYTES,
  SHARED_BYTES,
  SLOTS_BYTES,
  createShared,
  viewShared,
} from '../layout.js';
import type { SharedBuffers } from '../layout.js';
import type { OpenReply, ProviderConfig } from '../messages.js';
import { nativeOutput } from '../native-output.js';
import { Runtime } from '../runtime.js';
import { ThreadWorker } from '../workers.js';
import { forgetCurrent } from './current-context.js';
import type { RuntimeEvents } from './events.js';
import { spareHostMemory } from './spare-host-memory.js';

export async function openRuntime(
  provider: ProviderConfig,
  events: RuntimeEvents,
  inline: boolean,
): Promise<Runtime> {
  const hostMemory = spareHostMemory.take(provider.ordinal);
  const config: ProviderConfig = {
    ...provider,
    // The variable is read once: threads that start later do without the same features.
    without: (process.env['ASYNC_CUDA_WITHOUT'] ?? '').split(','),
    ...(hostMemory === undefined ? {} : { hostMemory }),
  };
  const buffers = allocateHost('Device.open', SHARED_BYTES, '', () =>
    createShared({
      buffer: new SharedArrayBuffer(PINNED_BYTES + PINNED_SLACK_BYTES),
      byteOffset: 0,
    }),
  );
  return inline ? openInline(config, buffers, events) : openThread(config, buffers, events);
}

async function openInline(
  config: ProviderConfig,
  buffers: SharedBuffers,
  events: RuntimeEvents,
): Promise<Runtime> {
  let runtime: Runtime | undefined;
  try {
    const { LibraryCaller, ThreadLoop, openDevice, openDriver, runProcedure } =
      await import('../thread/inline.js');
    const bare = openDriver(config, {
      print: (text) => runtime?.events.print(text),
      report: (report) => runtime?.onReport(report),
      askForLargePages: largePages(config.koffiPath),
      optimises: expectOptimiser,
    });
    const { driver, reply: info, buffers: own } = openDevice(bare, config, buffers);
    const shared = viewShared(own);
    const isGpu = config.provider === 'libcuda';
    const decoder = new Decoder(driver, shared, info.slotsAddress, isGpu, {
      failed: (failure) => runtime?.onFailed(failure),
      lost: (failure) => runtime?.onLost(failure),
      call: () => undefined,
      output: () => nativeOutput(config.koffiPath),
      libraryCaller: () => new LibraryCaller(config.koffiPath),
      makeRoom: (step, stream, bytes) => {
        if (bytes > info.totalMemory) return false;
        // The step is not taken within the decoder's own turn, because it uses the decoder.
        setImmediate(() => void runtime?.makeRoom(step, stream));
        return true;
      },
      idle: () => undefined,
    });
    // Opening made its own context current.
    forgetCurrent();
    const loop = new ThreadLoop(decoder);
    runtime = new Runtime(config, info, shared, events, undefined, { decoder, loop, runProcedure });
    return runtime;
  } catch (error) {
    throw errorFromFailure(describeFailure(error, 'open'), undefined);
  }
}

async function openThread(
  config: ProviderConfig,
  buffers: SharedBuffers,
  events: RuntimeEvents,
): Promise<Runtime> {
  let opened: ((info: OpenReply) => void) | undefined;
  let failed: ((reason: unknown) => void) | undefined;
  let runtime: Runtime | undefined;
  const info = new Promise<OpenReply>((resolve, reject) => {
    opened = resolve;
    failed = reject;
  });
  const thread = new ThreadWorker(
    { role: 'runtime', config, buffers },
    (message) => {
      if (message.kind === 'opened') opened?.(message.reply);
      else if (message.kind === 'open-failed') failed?.(errorFromFailure(message.error, undefined));
      else runtime?.onMessage(message);
    },
    (reason) => {
      failed?.(
        new CudaError('ERR_CUDA_INTERNAL', `the runtime thread ended: ${reason.message}`, {
          cause: reason,
        }),
      );
      runtime?.onDeath('the runtime thread', reason);
    },
  );
  thread.ref();
  try {
    // The module is loaded while the thread starts.
    const [reply, gpu] = await Promise.all([
      info,
      config.provider === 'libcuda' ? import('../thread/open-gpu-driver.js') : undefined,
    ]);
    const driver = gpu?.openGpuDriver(config);
    const pinned = reply.registered
      ? buffers.pinned
      : (reply.hostMemory ??
        driver!.hostView(reply.stagingAddress - SLOTS_BYTES, PINNED_BYTES).buffer);
    const shared = viewShared({ ...buffers, pinned, pinnedOffset: reply.pinnedOffset });
    runtime = new Runtime(config, reply, shared, events, thread, undefined);
    if (driver !== undefined) runtime.openInline(driver);
    return runtime;
  } catch (error) {
    void thread.end();
    throw error;
  } finally {
    thread.unref();
  }
}
