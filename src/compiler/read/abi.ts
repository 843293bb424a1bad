/** The order of a kernel's PTX parameters: by parameter of the signature, then as listed here. */
import type { AbiParam } from '../tree.js';

const kinds = [
  'pointer',
  'length',
  'extent',
  'stride',
  'map',
  'scalar',
] as const satisfies readonly AbiParam['kind'][];

function within(param: AbiParam): number {
  switch (param.kind) {
    case 'extent':
    case 'stride':
      return param.axis;
    case 'scalar':
      return param.field ?? 0;
    default:
      return 0;
  }
}

export function abiOrder(a: AbiParam, b: AbiParam): number {
  return (
    a.param - b.param || kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || within(a) - within(b)
  );
}
