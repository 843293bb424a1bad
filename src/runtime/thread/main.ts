/**
 * The start of the runtime's workers: the runtime thread itself, and the second worker for calls
 * that may wait. It is built into one self-contained script and started from its text.
 */
import { MessageChannel, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

import { runCopies } from '../copier.js';
import { Decoder } from '../decoder.js';
import { describeFailure } from '../failure.js';
import { WORD, viewShared, wakeJs } from '../layout.js';
import type { CallMessage, FromThread, OpenReply, ThreadStart, ToThread } from '../messages.js';
import { largePages } from '../large-pages.js';
import { nativeOutput } from '../native-output.js';
import { LibraryCaller } from '../../native/library-caller.js';
import { runProcedure } from '../procedures.js';
import type { KeepCode } from './boot.js';
import { ThreadLoop } from './loop.js';
import { enumerate, openDevice, openDriver } from './open-driver.js';
import { dismissMembers, startMember } from './start-crew.js';

/** A parameter of the function that this script is; see boot.ts. */
declare const keepCode: KeepCode;

const start = workerData as ThreadStart;
const { port } = start;

/** Records that the libraries are loaded: from here on the thread may be ended. */
function loaded(): void {
  Atomics.store(start.loading, 0, 0);
  Atomics.notify(start.loading, 0);
}

function post(message: FromThread): void {
  port.postMessage(message);
}

function reply(driver: ReturnType<typeof openDriver>, message: CallMessage): void {
  // It is the last call: the workers are ended after it.
  if (message.name === 'closeContext') keepCode();
  try {
    post({
      kind: 'reply',
      id: message.id,
      value: runProcedure(driver, message.name, message.args),
    });
  } catch (error) {
    post({ kind: 'reply-failed', id: message.id, error: describeFailure(error, message.name) });
  }
}

/** The port is kept, because a message in a channel is lost when its other end is collected. */
let sharing: MessagePort | undefined;

/**
 * Posts the device's data. A CPU device's memory is shared with every thread that requests it, and
 * a thread that does not must not keep it alive: it waits in a message, which is dropped when the
 * port is closed.
 */
function postOpened(driver: ReturnType<typeof openDriver>, reply: OpenReply): void {
  if (driver.provider !== 'cpu') {
    post({ kind: 'opened', reply });
    return;
  }
  const { port1, port2 } = new MessageChannel();
  sharing = port1;
  sharing.postMessage(driver.shareContext(reply.context));
  port.postMessage({ kind: 'opened', reply: { ...reply, sharing: port2 } } satisfies FromThread, [
    port2,
  ]);
}

function runtimeThread(): void {
  const buffers = start.buffers;
  if (buffers === undefined) return;
  let loop: ThreadLoop;
  try {
    let tell = post;
    const bare = openDriver(start.config, {
      print: (text) => tell({ kind: 'print', text }),
      report: (report) => tell({ kind: 'check', report }),
      start: startMember,
      askForLargePages: largePages(start.config.koffiPath),
      optimises: (ms) => tell({ kind: 'optimises', ms }),
    });
    const { driver, reply: opened, buffers: own } = openDevice(bare, start.config, buffers);
    const shared = viewShared(own);
    // The message is posted before the counter is incremented, so that JavaScript finds it when it
    // reads the counter.
    tell = (message) => {
      post(message);
      Atomics.add(shared.control, WORD.posted, 1);
      wakeJs(shared.control);
    };
    const decoder: Decoder = new Decoder(
      driver,
      shared,
      opened.slotsAddress,
      start.config.provider === 'libcuda',
      {
        failed: (failure) => tell({ kind: 'failed', failure }),
        lost: (failure) => tell({ kind: 'lost', failure }),
        call: () => {
          const received = receiveMessageOnPort(port) as { message: ToThread } | undefined;
          if (received === undefined) return;
          const { message } = received;
          if (message.kind === 'call') reply(driver, message);
          else decoder.hear(message);
        },
        output: () => nativeOutput(start.config.koffiPath),
        libraryCaller: () => new LibraryCaller(start.config.koffiPath),
        makeRoom: (step, stream, bytes) => {
          if (bytes > opened.totalMemory) return false;
          tell({ kind: 'short', step, stream });
          return true;
        },
        idle: () => tell({ kind: 'idle' }),
      },
    );
    loop = new ThreadLoop(decoder);
    postOpened(driver, opened);
  } catch (error) {
    post({ kind: 'open-failed', error: describeFailure(error, 'open') });
    return;
  } finally {
    loaded();
  }
  loop.run(keepCode);
  dismissMembers();
}

function callsThread(): void {
  const context = start.context;
  if (context === undefined) return;
  const driver = openDriver(start.config, { print: (text) => post({ kind: 'print', text }) });
  driver.cuInit(0);
  driver.cuCtxSetCurrent(context);
  loaded();
  port.on('message', (message: CallMessage) => reply(driver, message));
}

function enumerateDevices(): void {
  try {
    post({
      kind: 'enumerated',
      devices: enumerate(openDriver(start.config, { print: () => undefined })),
    });
  } catch (error) {
    post({ kind: 'open-failed', error: describeFailure(error, 'cuInit') });
  } finally {
    loaded();
  }
}

if (start.role === 'copier') runCopies(start.copying!, start.config.koffiPath, loaded);
else if (start.role === 'runtime') runtimeThread();
else if (start.role === 'calls') callsThread();
else enumerateDevices();
