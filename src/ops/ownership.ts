/**
 * The owners of memory that operations allocate.
 *
 * A run keeps a list of the memory that its steps have received or made. A step records the list's
 * length when it begins. When it has queued its work, memory that was added since and that its
 * value does not hold is closed, in stream order. The rest belongs to the step around it. A step
 * that has to wait removes its part of the list, because other steps use the list meanwhile.
 */
import { types } from 'node:util';

import { MEMORY, OWN, OWNER, OWNS, PARTS } from '../core/holder.js';
import type { MemoryHolder } from '../core/holder.js';
import { CudaDisposedError } from '../core/index.js';
import type { DeviceBuffer } from '../core/index.js';

/** Longer arrays may be sparse. */
const MOST_DENSE = 2 ** 22;

/** The number of passes over lists. Memory is marked with it instead of being put in sets. */
let passes = 0;

/**
 * Closes the memory of `owners`, from number `from` on, that `value` does not hold, and removes it
 * from the list. Where the value holds views of memory and not its owner, the views become its
 * owners.
 */
export function giveOn(owners: DeviceBuffer[], from: number, value: unknown): void {
  const only = owners.length - from === 1 ? owners[from]! : undefined;
  // The value of most steps is the one tensor that they have made.
  if (
    only !== undefined &&
    isHolder(value) &&
    value[MEMORY] === only.memory &&
    value[OWNS] &&
    only.memory.scoped &&
    !only.memory.disposed
  )
    return;
  const pass = ++passes;
  let listed = 0;
  for (let i = from; i < owners.length; i++) {
    const { memory } = owners[i]!;
    // Memory that was kept or closed meanwhile belongs to no step.
    if (memory.disposed || !memory.scoped) continue;
    memory.listedAt = pass;
    listed++;
  }
  const views = held(value, pass, listed);
  if (views !== undefined) ownByViews(views.filter((view) => view[MEMORY].ownedAt !== pass));
  let left = from;
  for (let i = from; i < owners.length; i++) {
    const owner = owners[i]!;
    const { memory } = owner;
    if (memory.disposed || !memory.scoped) continue;
    if (memory.heldAt === pass) owners[left++] = owner;
    else closeAfterStep(owner);
  }
  owners.length = left;
}

/** Leaves on a list the memory that `value` holds. */
export function keepHeld(owners: DeviceBuffer[], value: unknown): void {
  const pass = ++passes;
  for (const { memory } of owners) memory.listedAt = pass;
  held(value, pass);
  owners.splice(0, owners.length, ...owners.filter(({ memory }) => memory.heldAt === pass));
}

/** Leaves on a list the memory that `value` holds and `others` do not. */
export function giveOnly(owners: DeviceBuffer[], value: unknown, others: unknown): void {
  const pass = ++passes;
  for (const { memory } of owners) memory.listedAt = pass;
  held(others, pass);
  const heldByOthers = new Set(owners.filter(({ memory }) => memory.heldAt === pass));
  for (const { memory } of owners) memory.heldAt = 0;
  const views = held(value, pass) ?? [];
  const left = owners.filter((owner) => owner.memory.heldAt === pass && !heldByOthers.has(owner));
  ownByViews(
    views.filter(
      (view) => view[MEMORY].ownedAt !== pass && left.some(({ memory }) => memory === view[MEMORY]),
    ),
  );
  owners.splice(0, owners.length, ...left);
}

/**
 * Marks the listed memory that a value holds; returns its views, each once, or undefined where
 * there are none. `listed` is the number of pieces of memory to find: once the owner of each is
 * found, the rest of a large value need not be visited.
 */
function held(value: unknown, pass: number, listed = Infinity): MemoryHolder[] | undefined {
  let views: MemoryHolder[] | undefined;
  let left = listed;
  visit(value, (holder) => {
    const memory = holder[MEMORY];
    if (memory.listedAt !== pass || holder.isClosed) return true;
    memory.heldAt = pass;
    if (!holder[OWNS]) (views ??= []).push(holder);
    else if (memory.ownedAt !== pass) {
      memory.ownedAt = pass;
      left--;
    }
    return left > 0;
  });
  return views === undefined ? undefined : [...new Set(views)];
}

/** Views whose owner is not held own the memory together. */
function ownByViews(views: readonly MemoryHolder[]): void {
  for (const view of views) view[MEMORY].shares = 0;
  for (const view of views) {
    view[OWN]();
    view[MEMORY].shares++;
  }
}

function closeAfterStep(owner: DeviceBuffer): void {
  owner.memory.endedByStep = true;
  if (!owner.memory.keptByGraph) owner.closeMemory();
}

/** Closes the memory of steps that have failed, or of a run whose value is no longer awaited. */
export function closeAll(owners: readonly DeviceBuffer[]): void {
  for (const owner of owners) {
    const { memory } = owner;
    if (memory.disposed || !memory.scoped || memory.keptByGraph) continue;
    owner.closeMemory();
    // Memory of failed work may still be marked as undefined: another run must not get it.
    memory.device.recycled?.drop(memory);
  }
}

/** The caller owns the memory from now on. */
export function handOut(owners: readonly DeviceBuffer[]): void {
  for (const owner of owners) if (owner.memory.scoped) owner.watch();
}

/** Takes the memory that a value holds out of a run. Returns whether the value can hold memory. */
export function release(value: unknown, run: number): boolean {
  if (
    typeof value !== 'object' ||
    value === null ||
    !(isHolder(value) || partsOf(value) !== undefined)
  )
    return false;
  const pass = ++passes;
  const found = new Set<MemoryHolder>();
  visit(value, (holder) => {
    const memory = holder[MEMORY];
    if (holder.isClosed || memory.endedByStep)
      throw new CudaDisposedError(
        `keep: ${memory.toString()} was closed before. Keep it in the step that received or ` +
          'made it.',
      );
    if (memory.scoped || memory.keptBy === run) found.add(holder);
    if (holder[OWNS]) memory.ownedAt = pass;
    return true;
  });
  const views = [...found].filter((holder) => holder[MEMORY].ownedAt !== pass);
  ownByViews(views.filter((view) => view[MEMORY].scoped));
  // A view of memory that the same run has kept by another view becomes one more owner.
  for (const view of views)
    if (!view[MEMORY].scoped && view[MEMORY].shares > 0 && view[OWN]()) view[MEMORY].shares++;
  for (const holder of found) holder[MEMORY].keptBy = run;
  // Lists skip memory that is not scoped.
  handOut([...found].map((holder) => holder[OWNER]));
  return true;
}

function isHolder(value: unknown): value is MemoryHolder {
  // A Proxy may claim to have every property.
  return (
    typeof value === 'object' && value !== null && MEMORY in value && value[MEMORY] !== undefined
  );
}

/**
 * Calls `found` with each tensor and buffer that the value holds, until it returns false: the value
 * itself, or elements of arrays, plain objects, Maps and Sets. Class instances, functions and
 * getters hold nothing.
 */
function visit(value: unknown, found: (holder: MemoryHolder) => boolean): void {
  if (typeof value !== 'object' || value === null) return;
  if (isHolder(value)) {
    found(value);
    return;
  }
  const first = partsOf(value);
  if (first === undefined) return;
  // Values may be as deep as a chain is long, and may contain themselves.
  const seen = new Set<object>([value]);
  const left: Iterator<unknown>[] = [first[Symbol.iterator]()];
  while (left.length > 0) {
    const next = left.at(-1)!.next();
    if (next.done === true) {
      left.pop();
      continue;
    }
    const part: unknown = next.value;
    if (typeof part !== 'object' || part === null) continue;
    if (isHolder(part)) {
      if (!found(part)) return;
      continue;
    }
    const parts = partsOf(part);
    if (parts === undefined || seen.has(part)) continue;
    seen.add(part);
    left.push(parts[Symbol.iterator]());
  }
}

/**
 * The parts of an array, a plain object, a Map, a Set, or an object that lists its parts; undefined
 * for any other object.
 */
function partsOf(value: object): Iterable<unknown> | undefined {
  // A sparse array is visited by its elements only.
  if (Array.isArray(value)) return value.length > MOST_DENSE ? dataOf(value) : (value as unknown[]);
  if (PARTS in value) return value[PARTS] as Iterable<unknown>;
  const prototype: unknown = Object.getPrototypeOf(value);
  // The object may be of any realm: the prototype of plain objects has no prototype itself.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return dataOf(value);
  if (types.isMap(value)) return keysAndValues(value);
  return types.isSet(value) ? value.values() : undefined;
}

function* keysAndValues(map: Map<unknown, unknown>): Generator {
  yield* map.values();
  yield* map.keys();
}

function dataOf(value: object): unknown[] {
  const parts: unknown[] = [];
  for (const key of Object.keys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key);
    if (typeof property?.value === 'object') parts.push(property.value);
  }
  return parts;
}
