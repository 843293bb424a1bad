/**
 * Copies and fills. What they touch is checked at the call and done in stream order.
 */
import { CUmemorytype } from '../../flags.js';
import type { CUDA_MEMCPY2D, CUDA_MEMCPY3D, CopyCalls } from '../../driver.js';
import { CUresult } from '../../../ground/result.js';
import { MAX_PITCH } from '../device-attributes.js';
import { checkSize, fail, hex, invalidValue } from '../failure.js';
import { submit } from '../streams/capture.js';
import { texelBytes } from '../memory/array.js';
import type { Machine, Residence } from '../machine.js';
import { CopyOperation } from '../memory/copy-operation.js';
import type { CopyEnd } from '../memory/copy-operation.js';
import { FillOperation } from '../memory/fill-operation.js';

export function copyCalls(machine: Machine): CopyCalls {
  function copy(
    call: string,
    to: number,
    toResidence: Residence,
    from: number,
    fromResidence: Residence,
    bytes: number,
    handle: number,
  ): void {
    const stream = machine.stream(call, handle);
    checkSize(call, 'byteCount', bytes);
    if (bytes === 0) return;
    const toSpace = machine.space(call, 'the destination', to, bytes, toResidence);
    const fromSpace = machine.space(call, 'the source', from, bytes, fromResidence);
    submit(
      call,
      stream,
      CopyOperation.linear(toSpace, to - toSpace.origin, fromSpace, from - fromSpace.origin, bytes),
    );
  }

  /** The context at one end of a copy between two, and that the address is its. */
  function inContext(call: string, name: string, address: number, handle: number): void {
    const peer = machine.peers.get(handle);
    if (peer !== undefined) {
      if (!peer.owns(address))
        invalidValue(call, `the ${name} ${hex(address)} is not on the adopted device ${handle}`);
      return;
    }
    const context =
      machine.contexts.get(handle) ??
      fail(call, CUresult.CUDA_ERROR_INVALID_CONTEXT, `${handle} is not a live context`);
    context.checkFault(call);
    if (!context.memory.owns(address))
      invalidValue(call, `the ${name} ${hex(address)} is not on device ${context.device.ordinal}`);
  }

  /** One end of a box that is in an array: x in bytes, y in rows, z in slices or layers. */
  function arrayEnd(call: string, side: 'src' | 'dst', c: CUDA_MEMCPY3D): CopyEnd {
    const array = machine.find(call, 'array', machine.arrays, c[`${side}Array`] ?? 0);
    const x = c[`${side}XInBytes`];
    const y = c[`${side}Y`];
    const z = c[`${side}Z`];
    const row = array.width * texelBytes(call, array.format, array.channels);
    if (x + c.WidthInBytes > row)
      invalidValue(
        call,
        `${side}XInBytes ${x} and ${c.WidthInBytes} bytes are past the array's rows of ` +
          `${row} bytes`,
      );
    if (y + c.Height > array.height)
      invalidValue(call, `${side}Y ${y} and ${c.Height} rows are past the array's ${array.height}`);
    if (z + c.Depth > array.depth)
      invalidValue(call, `${side}Z ${z} and ${c.Depth} slices are past the array's ${array.depth}`);
    const slicePitch = array.pitch * array.height;
    return {
      space: array.allocation.memory,
      at: array.address + z * slicePitch + y * array.pitch + x,
      pitch: array.pitch,
      slicePitch,
    };
  }

  /** One end of a box, checked from its first byte to its last. */
  function end(call: string, side: 'src' | 'dst', c: CUDA_MEMCPY3D): CopyEnd {
    const type = c[`${side}MemoryType`];
    const x = c[`${side}XInBytes`];
    const y = c[`${side}Y`];
    const z = c[`${side}Z`];
    let pitch = c[`${side}Pitch`];
    let rows = c[`${side}Height`];
    for (const [name, value] of Object.entries({
      XInBytes: x,
      Y: y,
      Z: z,
      Pitch: pitch,
      Height: rows,
    }))
      checkSize(call, side + name, value);
    if (type === CUmemorytype.CU_MEMORYTYPE_ARRAY) return arrayEnd(call, side, c);
    if (type < 1 || type > 4) invalidValue(call, `${side}MemoryType is ${type}`);
    // A single row has no next one, so its pitch does not matter.
    if (pitch === 0 && c.Height * c.Depth === 1 && y === 0 && z === 0) pitch = x + c.WidthInBytes;
    if (rows === 0 && c.Depth === 1 && z === 0) rows = y + c.Height;
    if (pitch < x + c.WidthInBytes)
      invalidValue(
        call,
        `${side}Pitch ${pitch} is less than the ${x + c.WidthInBytes} bytes of a row`,
      );
    if (pitch > MAX_PITCH)
      invalidValue(call, `${side}Pitch ${pitch} is more than the device's ${MAX_PITCH}`);
    if (rows < y + c.Height && c.Depth > 1)
      invalidValue(call, `${side}Height ${rows} is less than the ${y + c.Height} rows of a slice`);
    const slicePitch = pitch * rows;
    const address =
      (type === CUmemorytype.CU_MEMORYTYPE_HOST ? c[`${side}Host`] : c[`${side}Device`]) +
      z * slicePitch +
      y * pitch +
      x;
    const bytes = (c.Depth - 1) * slicePitch + (c.Height - 1) * pitch + c.WidthInBytes;
    const residence = type === CUmemorytype.CU_MEMORYTYPE_HOST ? 'host' : 'any';
    const space = machine.space(
      call,
      side === 'src' ? 'the source' : 'the destination',
      address,
      bytes,
      residence,
    );
    return { space, at: address - space.origin, pitch, slicePitch };
  }

  function box(call: string, c: CUDA_MEMCPY3D, handle: number): void {
    const stream = machine.stream(call, handle);
    checkSize(call, 'WidthInBytes', c.WidthInBytes);
    checkSize(call, 'Height', c.Height);
    checkSize(call, 'Depth', c.Depth);
    if (c.WidthInBytes === 0 || c.Height === 0 || c.Depth === 0) return;
    const from = end(call, 'src', c);
    submit(
      call,
      stream,
      CopyOperation.box(end(call, 'dst', c), from, c.WidthInBytes, c.Height, c.Depth),
    );
  }

  function fill(
    call: string,
    to: number,
    pitch: number,
    elementBytes: number,
    value: number,
    width: number,
    height: number,
    handle: number,
  ): void {
    const stream = machine.stream(call, handle);
    checkSize(call, 'the number of elements', width);
    checkSize(call, 'height', height);
    const bytes = width * elementBytes;
    if (to % elementBytes !== 0)
      invalidValue(call, `${hex(to)} is not a multiple of ${elementBytes}`);
    if (bytes === 0 || height === 0) return;
    if (height > 1) {
      checkSize(call, 'dstPitch', pitch);
      if (pitch < bytes)
        invalidValue(call, `dstPitch ${pitch} is less than the ${bytes} bytes of a row`);
      if (pitch % elementBytes !== 0)
        invalidValue(call, `dstPitch ${pitch} is not a multiple of ${elementBytes}`);
    }
    const space = machine.space(call, 'the destination', to, (height - 1) * pitch + bytes, 'any');
    submit(
      call,
      stream,
      FillOperation.take(space, to - space.origin, pitch, elementBytes, value, bytes, height),
    );
  }

  return {
    cuMemcpyHtoDAsync(dstDevice, srcHost, byteCount, stream) {
      copy('cuMemcpyHtoDAsync', dstDevice, 'any', srcHost, 'host', byteCount, stream);
    },
    cuMemcpyDtoHAsync(dstHost, srcDevice, byteCount, stream) {
      copy('cuMemcpyDtoHAsync', dstHost, 'host', srcDevice, 'any', byteCount, stream);
    },
    cuMemcpyDtoDAsync(dstDevice, srcDevice, byteCount, stream) {
      copy('cuMemcpyDtoDAsync', dstDevice, 'any', srcDevice, 'any', byteCount, stream);
    },
    cuMemcpyPeerAsync(dstDevice, dstContext, srcDevice, srcContext, byteCount, stream) {
      const call = 'cuMemcpyPeerAsync';
      inContext(call, 'destination', dstDevice, dstContext);
      inContext(call, 'source', srcDevice, srcContext);
      copy(call, dstDevice, 'device', srcDevice, 'device', byteCount, stream);
    },
    cuMemcpy2DAsync(c: CUDA_MEMCPY2D, stream) {
      box(
        'cuMemcpy2DAsync',
        { ...c, srcZ: 0, dstZ: 0, srcHeight: 0, dstHeight: 0, Depth: 1 },
        stream,
      );
    },
    cuMemcpy3DAsync(c, stream) {
      box('cuMemcpy3DAsync', c, stream);
    },
    cuMemcpy3DPeerAsync(c, stream) {
      const call = 'cuMemcpy3DPeerAsync';
      if (c.dstMemoryType !== CUmemorytype.CU_MEMORYTYPE_HOST)
        inContext(call, 'destination', c.dstDevice, c.dstContext);
      if (c.srcMemoryType !== CUmemorytype.CU_MEMORYTYPE_HOST)
        inContext(call, 'source', c.srcDevice, c.srcContext);
      box(call, c, stream);
    },
    cuMemsetD8Async(dstDevice, value, n, stream) {
      fill('cuMemsetD8Async', dstDevice, 0, 1, value, n, 1, stream);
    },
    cuMemsetD16Async(dstDevice, value, n, stream) {
      fill('cuMemsetD16Async', dstDevice, 0, 2, value, n, 1, stream);
    },
    cuMemsetD32Async(dstDevice, value, n, stream) {
      fill('cuMemsetD32Async', dstDevice, 0, 4, value, n, 1, stream);
    },
    cuMemsetD2D8Async(dstDevice, dstPitch, value, width, height, stream) {
      fill('cuMemsetD2D8Async', dstDevice, dstPitch, 1, value, width, height, stream);
    },
    cuMemsetD2D16Async(dstDevice, dstPitch, value, width, height, stream) {
      fill('cuMemsetD2D16Async', dstDevice, dstPitch, 2, value, width, height, stream);
    },
    cuMemsetD2D32Async(dstDevice, dstPitch, value, width, height, stream) {
      fill('cuMemsetD2D32Async', dstDevice, dstPitch, 4, value, width, height, stream);
    },
  };
}
