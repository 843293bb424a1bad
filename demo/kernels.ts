/**
 * The demo's kernels as typed objects: the PTX files beside their CUDA sources, loaded and
 * declared.
 *
 * Each declaration repeats the signature in the `.cu` file; it is checked against the PTX when the
 * kernel is looked up, and every launch is checked against it.
 */
import { readFile } from 'node:fs/promises';

import { type CoreDevice, f32, i32, inout, input, output, u32, u8 } from 'async-cuda/core';

async function loadPtx(device: CoreDevice, name: string) {
  return device.loadModule(
    await readFile(new URL(`./kernels/${name}.ptx`, import.meta.url), 'utf8'),
  );
}

/** Loads the four modules. Their kernels stay usable until the device closes. */
export async function loadKernels(device: CoreDevice) {
  const [grey, blur, sobel, equalise] = await Promise.all([
    loadPtx(device, 'grey'),
    loadPtx(device, 'blur'),
    loadPtx(device, 'sobel'),
    loadPtx(device, 'equalise'),
  ]);
  return {
    grey: grey.kernel('grey', [input(u8), output(u8), u32]),
    blurRows: blur.kernel('blur_rows', [input(u8), output(f32), input(f32), i32, i32]),
    blurColumns: blur.kernel('blur_columns', [input(f32), output(u8), input(f32), i32, i32]),
    sobel: sobel.kernel('sobel', [input(u8), output(u8), i32, i32]),
    histogram: equalise.kernel('histogram', [input(u8), inout(u32), u32]),
    equaliseTable: equalise.kernel('equalise_table', [input(u32), output(u8), u32]),
    equalise: equalise.kernel('equalise', [input(u8), input(u8), output(u8), u32]),
  };
}

export type Kernels = Awaited<ReturnType<typeof loadKernels>>;
