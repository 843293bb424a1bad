/**
 * Starts the threads of a CPU device's crew. The runtime thread does it, not the JS thread: it needs no turn of the event
 * loop there, and the crew ends with the thread that owns the device, however that ends.
 */
import { MessageChannel, Worker } from 'node:worker_threads';

import type { MemberStart } from '../../driver/cpu/crew/control.js';
import type { Member } from '../../driver/cpu/crew/crew.js';
import { crewSource } from './crew-source.js';

export function startMember(start: MemberStart): Member {
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
      port1.close();
      void worker.terminate();
    },
  };
}
