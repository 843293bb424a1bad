/**
 * The version of PTX that a kernel is written in: the lowest that has all its instructions, so that
 * old drivers accept it.
 */

/** Gives major · 10 + minor of '9.0', 'sm_90' or '9.0a'. */
export function capabilityNumber(text: string): number {
  const match = /^(?:sm_)?(\d+?)\.?(\d)[af]?$/.exec(text);
  if (match === null)
    throw new RangeError(
      `capability is ${JSON.stringify(text)}, where a compute capability such as '9.0' belongs`,
    );
  return Number(match[1]) * 10 + Number(match[2]);
}

/**
 * The PTX version that introduced each target (PTX ISA, table "Target architectures"). 6.4 is the
 * first with all instructions that are used for sm_75 here.
 */
const introduced: readonly (readonly [capability: number, isa: number])[] = [
  [50, 64],
  [80, 70],
  [86, 71],
  [87, 74],
  [89, 78],
  [90, 78],
  [100, 86],
  [101, 86],
  [120, 87],
  [103, 88],
  [121, 88],
  [110, 90],
  [88, 90],
];

/** The versions that some operations need. */
export const featureVersions = {
  f8: 81,
  bf16Atomic: 78,
  tanh: 70,
  copysign: 64,
  hopper: 80,
  /** Products of warp groups of i8 with u8. */
  mixedProducts: 84,
  /** Products of warps of f8. */
  smallProducts: 84,
  /** The same with sums of f16. */
  smallProductsInHalf: 87,
} as const;
export type Feature = keyof typeof featureVersions;

export function isaFor(capability: number, features: Iterable<Feature>): string {
  const exact = introduced.find(([known]) => known === capability);
  let isa =
    exact?.[1] ??
    Math.max(
      ...introduced.filter(([known]) => known <= capability).map(([, version]) => version),
      64,
    );
  for (const feature of features) isa = Math.max(isa, featureVersions[feature]);
  return `${Math.floor(isa / 10)}.${isa % 10}`;
}
