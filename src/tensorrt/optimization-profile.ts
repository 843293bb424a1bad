/** OptimizationProfile: extents of dynamic inputs between which an engine works. */
import { CudaArgumentError } from '../core/index.js';
import { checkInteger, checkText, invalid } from '../ground/arguments.js';
import type { ShapeRange } from './engine-options.js';
import { NativeHandle } from './native-handle.js';
import { MOST_DIMS } from './most-dims.js';

const SELECTORS = ['min', 'opt', 'max'] as const;

/**
 * The extents of dynamic inputs between which an engine works.
 * `builder.createOptimizationProfile()` makes it, and `config.addOptimizationProfile(profile)` puts
 * it into effect. IOptimizationProfile
 *
 * @example
 * ```ts no-run
 * await using builder = await Builder.create();
 * const profile: OptimizationProfile = await builder.createOptimizationProfile();
 * await profile.setShape('image', { min: [1, 3, 8, 8], opt: [8, 3, 8, 8], max: [32, 3, 8, 8] });
 * const config = await builder.createConfig();
 * console.log(await config.addOptimizationProfile(profile)); // 0
 * ```
 */
export class OptimizationProfile extends NativeHandle {
  /** @internal */
  constructor(builder: NativeHandle, number: number) {
    super(builder.thread, number, 'an optimization profile', builder);
  }

  /**
   * Sets the extents of an input. setDimensions
   *
   * @throws CudaArgumentError for more than 8 axes, ranks that differ, extents that decrease
   */
  setShape(name: string, range: ShapeRange): Promise<void> {
    checkText('name', name);
    checkRange(name, range);
    return this.thread.call('setProfileShape', this.handle, name, range);
  }

  /** Returns the extents of an input; undefined where they were not set. getDimensions */
  async shape(name: string): Promise<ShapeRange | undefined> {
    const { min, opt, max } = await this.thread.call('profileShape', this.handle, name);
    return min === undefined || opt === undefined || max === undefined
      ? undefined
      : { min, opt, max };
  }

  /** Sets the values of an input that is a shape tensor. setShapeValues */
  setShapeValues(name: string, values: ShapeRange): Promise<void> {
    checkText('name', name);
    for (const selector of SELECTORS)
      if (!Array.isArray(values[selector]))
        throw invalid(`${name}.${selector}`, 'a list of whole numbers', values[selector]);
    return this.thread.call('setProfileValues', this.handle, name, values);
  }

  /** Sets the target of additional memory, from 0 to 1. setExtraMemoryTarget */
  setExtraMemoryTarget(target: number): Promise<void> {
    if (typeof target !== 'number' || !(target >= 0 && target <= 1))
      throw invalid('target', 'a number from 0 to 1', target);
    return this.thread.call('setExtraMemoryTarget', this.handle, target);
  }

  /** Returns the target of additional memory, from 0 to 1. getExtraMemoryTarget */
  extraMemoryTarget(): Promise<number> {
    return this.thread.call('extraMemoryTarget', this.handle);
  }

  /** Returns whether its minimum, optimum and maximum are consistent. isValid */
  isValid(): Promise<boolean> {
    return this.thread.call('profileIsValid', this.handle);
  }
}

/**
 * Checks a range.
 *
 * @throws CudaArgumentError for more than 8 axes, ranks that differ, extents that decrease
 */
export function checkRange(name: string, range: ShapeRange): void {
  for (const selector of SELECTORS) {
    const extents = range[selector];
    if (!Array.isArray(extents)) throw invalid(`${name}.${selector}`, 'a list of extents', extents);
    if (extents.length > MOST_DIMS)
      throw invalid(`${name}.${selector}`, `at most ${MOST_DIMS} extents`, extents);
    if (extents.length !== range.min.length)
      throw invalid(`${name}.${selector}`, `${range.min.length} extents, as in min`, extents);
    [...(extents as unknown[])].forEach((extent: unknown, axis: number) => {
      checkInteger(`${name}.${selector}[${axis}]`, extent, 0, 2 ** 31 - 1);
    });
  }
  range.min.forEach((low, axis) => {
    if (low <= range.opt[axis]! && range.opt[axis]! <= range.max[axis]!) return;
    throw new CudaArgumentError(
      name,
      `${name}: extent ${axis} goes from ${low} over ${range.opt[axis]!} to ` +
        `${range.max[axis]!}, and must not go down.`,
    );
  });
}
