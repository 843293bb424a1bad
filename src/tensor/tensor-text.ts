/** How tensors are shown: in errors, and in JSON. */
import type { DTypeName } from '../core/index.js';
import { showShape } from './shape.js';
import type { AnyTensor } from './tensor.js';

/** A tensor in JSON: see {@link Tensor.toJSON}. */
export interface TensorJson {
  readonly type: 'Tensor';
  readonly dtype: DTypeName;
  readonly shape: readonly number[];
  /** Kind and ordinal: `cuda:0`. */
  readonly device: string;
  readonly label?: string;
}

/** dtype, shape, label and device, and what is unusual: strides, a view, closed. */
export function textOf(tensor: AnyTensor): string {
  const { dtype, shape, device, label } = tensor;
  const name = label === undefined ? '' : ` '${label}'`;
  const strides = tensor.isContiguous ? '' : `, strides ${showShape(tensor.strides)}`;
  const state = `${tensor.isView ? ', a view' : ''}${tensor.isClosed ? ', closed' : ''}`;
  return (
    `Tensor<${dtype.name}, ${showShape(shape)}>${name} on ` +
    `${device.kind}:${device.ordinal}${strides}${state}`
  );
}

/** What `JSON.stringify` writes of a tensor. */
export function jsonOf({ dtype, shape, device, label }: AnyTensor): TensorJson {
  return {
    type: 'Tensor',
    dtype: dtype.name,
    shape: [...shape],
    device: `${device.kind}:${device.ordinal}`,
    ...(label === undefined ? {} : { label }),
  };
}
