/**
 * Memory of one device in commands of another: a handle there, and the tracking of the memory
 * itself, so that the streams of each device wait for conflicting work of the other.
 */
import { HANDLE } from '../runtime/layout.js';
import { invalid } from '../ground/arguments.js';
import type { Allocation } from './memory.js';
import type { SharedDevice } from './open-devices.js';
import { Resource } from './resource.js';
import type { Stream } from './stream.js';
import { captureError } from './capture-error.js';

export class ForeignMemory extends Resource {
  readonly memory: Allocation;
  /** The device whose commands name the memory. */
  private readonly user: SharedDevice;
  /**
   * Whether a kernel or copy in a graph uses the memory: each launch of the graph needs peer
   * access.
   */
  private inGraph = false;

  constructor(memory: Allocation, user: SharedDevice) {
    super(user.runtime.adoptForeign(memory.device.runtime, memory.handle), true);
    this.memory = memory;
    this.user = user;
  }

  override order(stream: Stream, access: number): void {
    if (this.inGraph) this.checkAccess('graph');
    this.memory.order(stream, access);
  }

  override used(stream: Stream, access: number, mark: number): void {
    this.memory.used(stream, access, mark);
  }

  override keepForGraph(): void {
    this.memory.keepForGraph();
  }

  override releaseFromGraph(): void {
    this.memory.releaseFromGraph();
  }

  /** Checks an argument of a kernel. Throws where the device cannot reach the memory. */
  checkArgument(stream: Stream, argument: string): void {
    this.checkAccess(argument);
    if (stream.captureScope === undefined) return;
    this.checkCapture(stream, argument);
    this.inGraph = true;
  }

  /**
   * Checks the source of a copy. Outside a capture the driver copies without peer access; a
   * recorded copy needs it, as kernels do.
   */
  checkSource(stream: Stream, argument: string): void {
    if (stream.captureScope === undefined) return;
    this.checkCapture(stream, argument);
    if (this.user.runtime.config.provider !== 'libcuda') return;
    if (!this.user.reaches.has(this.memory.device.runtime)) {
      throw captureError(
        `${argument}: copying from ${this.memory.device.name} without peer access`,
        'await device.enablePeerAccess(source.device) before the capture, or copy before it ' +
          'or after graph.launch()',
      );
    }
    this.inGraph = true;
  }

  /**
   * A graph holds addresses, and nothing in a capture waits for an allocation of another device.
   */
  private checkCapture(stream: Stream, argument: string): void {
    if (stream.captureScope === undefined) return;
    const { status } = this.memory.device.runtime.shared;
    if (Atomics.load(status, this.memory.handle) === HANDLE.live) return;
    throw captureError(
      `${argument}: using memory of another device whose allocation may not have ended`,
      'await buffer.allocated() before the capture',
    );
  }

  private checkAccess(argument: string): void {
    if (this.user.reaches.has(this.memory.device.runtime)) return;
    const { device } = this.memory;
    throw invalid(
      argument,
      `memory of ${this.user.name}, or of a device that it has access to`,
      `${this.memory.toString()} on ${device.name}`,
      'Copy it first: a buffer of this device .copyFrom(stream, other). Or let kernels of ' +
        'this device use it where it is: await device.enablePeerAccess(other.device).',
    );
  }
}

/**
 * The memory as commands of `user` name it: the memory itself where it belongs to `user`, undefined
 * where they cannot name it (the two devices are not of one provider).
 */
export function memoryFor(
  memory: Allocation,
  user: SharedDevice,
): Allocation | ForeignMemory | undefined {
  const { runtime } = memory.device;
  if (runtime === user.runtime) return memory;
  if (runtime.config.provider !== user.runtime.config.provider) return undefined;
  let foreign = memory.foreign.get(user);
  if (foreign === undefined) {
    user.link(memory.device.shared);
    foreign = new ForeignMemory(memory, user);
    memory.foreign = new Map([...memory.foreign, [user, foreign]]);
  }
  return foreign;
}
