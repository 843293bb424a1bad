/** A tensor's entry in the lowered kernel's signature. */
import type { SignatureEntry } from '../signature.js';
import type { TensorForm } from './tile-form.js';

type TensorEntry = Extract<SignatureEntry, { kind: 'tensor' }>;

/** Strided tensors are indexed by their axes, the others by one. */
export const tensorEntry = (entry: TensorEntry, { access, rank }: TensorForm): TensorEntry => ({
  ...entry,
  rank: access === 'strided' ? rank : 1,
});
