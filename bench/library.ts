/**
 * The library as it is published: the built package, not the sources that `async-cuda/core` names
 * inside this project. `npm run bench` builds it first.
 */
import type * as Core from 'async-cuda/core';
import type * as Inference from 'async-cuda/inference';
import type * as Images from 'async-cuda/images';
import type * as Library from 'async-cuda/library';
import type * as OnnxRuntime from 'async-cuda/onnxruntime';
import type * as Ops from 'async-cuda/ops';
import type * as Root from 'async-cuda';
import type * as TensorRT from 'async-cuda/tensorrt';

async function built(name: string): Promise<unknown> {
  return import(new URL(`../dist/${name}.js`, import.meta.url).href).catch((cause: unknown) => {
    throw new Error(`bench: dist/${name}.js cannot be loaded; build it with npm run build:js`, {
      cause,
    });
  });
}

export const core = (await built('core')) as typeof Core;
export const ops = (await built('ops')) as typeof Ops;
export const library = (await built('library')) as typeof Library;
export const root = (await built('index')) as typeof Root;
export const inference = (await built('inference')) as typeof Inference;
export const imageLibrary = (await built('images')) as typeof Images;
export const onnxruntime = (await built('onnxruntime')) as typeof OnnxRuntime;
export const tensorrt = (await built('tensorrt')) as typeof TensorRT;

export type {
  CoreDevice,
  DeviceBuffer,
  DeviceName,
  HostArray,
  Kernel,
  Module,
  Pending,
  Stream,
} from 'async-cuda/core';
export type { DeviceOp, OpContext, OpGraph, SchedulingPolicy } from 'async-cuda/ops';
