/**
 * Starts the threads of a CPU device's crew. The runtime thread does it, because that needs no turn
 * of the event loop there, and the crew ends with the thread that owns the device, however that
 * ends.
 */
import { MessageChannel, Worker } from 'node:worker_threads';

import { WORD, ring } from '../../driver/cpu/crew/control.js';
import type { MemberStart } from '../../driver/cpu/crew/control.js';
import type { Member } from '../../driver/cpu/crew/crew-options.js';
import { crewSource } from './crew-source.js';

/** The memory that the crews of this thread share with it. */
const controls = new Set<SharedArrayBuffer>();

/**
 * Stops all members, when this thread ends. Node ends the threads that a thread has started one by
 * one, and until its turn each would continue to work (an exit with four of them on two cores took
 * 190 ms, measured).
 */
export function dismissMembers(): void {
  for (const control of controls) {
    const words = new Int32Array(control);
    Atomics.store(words, WORD.stop, 1);
    ring(words, WORD.bell);
  }
}

export function startMember(start: MemberStart): Member {
  controls.add(start.control);
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(crewSource, {
    eval: true,
    execArgv: [],
    env: {},
    stdout: false,
    stderr: false,
    workerData: { ...start, port: port2 },
    transferList: [port2],
    name: 'async-cuda crew',
  });
  worker.unref();
  port1.unref();
  return {
    post: (message) => port1.postMessage(message),
    end: () => {
      controls.delete(start.control);
      port1.close();
      void worker.terminate();
    },
  };
}
