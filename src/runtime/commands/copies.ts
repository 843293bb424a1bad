/** Commands for copies: plain ones, of rows, and of boxes. */
import { isCapturing } from '../layout.js';
import { command, handlesOf, operandsAt } from './command.js';
import type { Command, Read } from './command.js';
import {
  COPY_2D,
  COPY_3D,
  COPY_DEVICE_TO_DEVICE,
  COPY_DEVICE_TO_HOST,
  COPY_HOST_TO_DEVICE,
  COPY_PEER,
  copy2D,
  copy3D,
} from './copy-shapes.js';
import { int64 } from './record.js';
import type { CopyDirection, OperationDetails } from './trace.js';

/** The words of a plain copy; offsets and bytes are 64-bit. */
const COPY = { to: 0, toOffset: 1, from: 3, fromOffset: 4, bytes: 6, kind: 8 } as const;

const DIRECTIONS: Readonly<Record<number, CopyDirection>> = {
  [COPY_HOST_TO_DEVICE]: 'hostToDevice',
  [COPY_DEVICE_TO_HOST]: 'deviceToHost',
  [COPY_DEVICE_TO_DEVICE]: 'deviceToDevice',
  [COPY_PEER]: 'peer',
};
/**
 * The bits of a 3-D copy's kind that contain the direction; the other bits are set for ends that
 * are arrays.
 */
const DIRECTION_MASK = 3;

function direction(kind: number): Read<CopyDirection> {
  return (memory, body) => DIRECTIONS[memory[body + kind]! & DIRECTION_MASK]!;
}

function trace(
  operands: Read<number[]>,
  copies: { direction: Read<CopyDirection>; bytes: Read<number> },
): Read<OperationDetails> {
  return (memory, body) => ({
    kind: 'copy',
    memory: handlesOf(operands(memory, body)),
    bytes: copies.bytes(memory, body),
    direction: copies.direction(memory, body),
  });
}

const COPY_OPERANDS = operandsAt(COPY.to, COPY.from);
const COPY_COUNTS = {
  direction: direction(COPY.kind),
  bytes: (memory: Int32Array, body: number) => int64(memory, body + COPY.bytes),
};
const COPY_2D_OPERANDS = operandsAt(COPY_2D.to, COPY_2D.from);
const COPY_2D_COUNTS = {
  direction: direction(COPY_2D.kind),
  bytes: (memory: Int32Array, body: number) =>
    memory[body + COPY_2D.width]! * memory[body + COPY_2D.height]!,
};
const COPY_3D_OPERANDS = operandsAt(COPY_3D.to, COPY_3D.from);
const COPY_3D_COUNTS = {
  direction: direction(COPY_3D.kind),
  bytes: (memory: Int32Array, body: number) =>
    memory[body + COPY_3D.width]! * memory[body + COPY_3D.height]! * memory[body + COPY_3D.depth]!,
};

export const copies = {
  copy: command({
    op: 4,
    call: 'cuMemcpyAsync',
    words: COPY,
    length: 9,
    operands: COPY_OPERANDS,
    makes: undefined,
    trace: trace(COPY_OPERANDS, COPY_COUNTS),
    inFlight: 'copy',
    copies: COPY_COUNTS,
    takesTime: true,
    visit: 'always',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands, peers }, memory, body, slot) => {
      const stream = shared.streams[slot]!;
      const bytes = int64(memory, body + COPY.bytes);
      const src =
        operands.address(memory[body + COPY.from]!) + int64(memory, body + COPY.fromOffset);
      const dst = operands.address(memory[body + COPY.to]!) + int64(memory, body + COPY.toOffset);
      const kind = memory[body + COPY.kind]!;
      if (bytes === 0) return;
      if (kind === COPY_HOST_TO_DEVICE) driver.cuMemcpyHtoDAsync(dst, src, bytes, stream);
      else if (kind === COPY_DEVICE_TO_HOST) driver.cuMemcpyDtoHAsync(dst, src, bytes, stream);
      else if (kind === COPY_PEER) {
        const to = operands.context(memory[body + COPY.to]!);
        const from = operands.context(memory[body + COPY.from]!);
        // Two threads may use one device: then both have the same context. A captured copy must not
        // name contexts.
        if (to === from || isCapturing(shared, slot))
          driver.cuMemcpyDtoDAsync(dst, src, bytes, stream);
        else
          peers.callWithPeer(stream, () =>
            driver.cuMemcpyPeerAsync(dst, to, src, from, bytes, stream),
          );
      } else driver.cuMemcpyDtoDAsync(dst, src, bytes, stream);
    },
  }),

  copy2D: command({
    op: 19,
    call: 'cuMemcpy2DAsync',
    words: COPY_2D,
    length: 11,
    operands: COPY_2D_OPERANDS,
    makes: undefined,
    trace: trace(COPY_2D_OPERANDS, COPY_2D_COUNTS),
    inFlight: 'copy',
    copies: COPY_2D_COUNTS,
    takesTime: true,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, stream) => {
      const to = operands.address(memory[body + COPY_2D.to]!);
      const from = operands.address(memory[body + COPY_2D.from]!);
      driver.cuMemcpy2DAsync(copy2D(memory, body, to, from), shared.streams[stream]!);
    },
  }),

  copy3D: command({
    op: 31,
    call: 'cuMemcpy3DAsync',
    words: COPY_3D,
    length: 14,
    operands: COPY_3D_OPERANDS,
    makes: undefined,
    trace: trace(COPY_3D_OPERANDS, COPY_3D_COUNTS),
    inFlight: 'copy',
    copies: COPY_3D_COUNTS,
    takesTime: true,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands, peers }, memory, body, slot) => {
      const stream = shared.streams[slot]!;
      const to = memory[body + COPY_3D.to]!;
      const from = memory[body + COPY_3D.from]!;
      const box = copy3D(memory, body, operands.address(to), operands.address(from));
      const between = {
        ...box,
        dstContext: operands.context(to),
        srcContext: operands.context(from),
      };
      const apart =
        between.dstContext !== between.srcContext && memory[body + COPY_3D.kind] === COPY_PEER;
      if (apart && !isCapturing(shared, slot))
        peers.callWithPeer(stream, () => driver.cuMemcpy3DPeerAsync(between, stream));
      else driver.cuMemcpy3DAsync(box, stream);
    },
  }),
} satisfies Record<string, Command>;
