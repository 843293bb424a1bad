/** What goes into the models' tasks, and what comes out of them to be drawn. */
import { type Device, type DeviceOp, type Tensor, u8 } from 'async-cuda';

import { someInATurn } from './turns.js';

/** Extents in pixels. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Packed 8-bit RGB, on the host. */
export interface HostPhotograph extends Size {
  /** `height` × `width` × 3 bytes. */
  readonly data: Uint8Array;
}

/** Packed 8-bit RGB on the device, [height, width, 3]. It stays its owner's. */
export type DevicePhotograph = Tensor<'u8', number[]>;

export type Photograph = HostPhotograph | DevicePhotograph;

/** In pixels of a photograph, from its top left corner. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Something on a photograph, with its name and where it is. */
export interface Finding {
  readonly label: string;
  /** How sure the model is, from 0 to 1. */
  readonly score: number;
  /** Four, clockwise from what is its top left one when it is held upright. */
  readonly corners: readonly Point[];
}

/** Photographs of the host that are copied in one turn of the event loop. */
const UPLOADS_IN_A_TURN = 4;

export function sizeOf(photograph: Photograph): Size {
  if (isOnHost(photograph)) return photograph;
  const [height, width] = photograph.shape;
  return { width: width!, height: height! };
}

/**
 * The result of `work` for the photographs on the device. Those of the host are uploaded for it,
 * and freed after it.
 */
export function withPhotographs<R>(
  device: Device,
  photographs: readonly Photograph[],
  work: (images: readonly DevicePhotograph[]) => DeviceOp<R>,
): DeviceOp<R> {
  const bytes = photographs.reduce(
    (sum, each) => sum + (isOnHost(each) ? each.width * each.height * 3 : 0),
    0,
  );
  if (bytes === 0) return work(photographs as readonly DevicePhotograph[]);
  return device.uninitialized(u8, [bytes]).andThen((pixels) => {
    const uploads: (() => DeviceOp<unknown>)[] = [];
    let start = 0;
    const images = photographs.map((photograph) => {
      if (!isOnHost(photograph)) return photograph;
      const { width, height, data } = photograph;
      const image = pixels
        .slice([start, (start += width * height * 3)])
        .reshape([height, width, 3]);
      uploads.push(() => image.write(data));
      return image;
    });
    return someInATurn(device, uploads, UPLOADS_IN_A_TURN).andThen(() => work(images));
  });
}

function isOnHost(photograph: Photograph): photograph is HostPhotograph {
  return 'data' in photograph;
}
