// Textures and surfaces. A handle is the address of a descriptor (texture-descriptor.ts);
// runtime/textures.ts computes with it. Textures have one level, so levels of detail and gradients
// have no effect.

import type { Arg } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { ACCESS } from '../check.js';
import { emitCallerCheck, emitTouch } from '../emit/check.js';
import { checkedPlace } from '../emit/memory-access.js';
import { GEOMETRY } from '../runtime/textures.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { TEXTURE, TEXTURE_KIND } from '../texture-descriptor.js';
import { storeName, loadName } from './memory.js';

const B32 = scalarType('b32');
const S32 = scalarType('s32');
const F32 = scalarType('f32');
const U64 = scalarType('u64');
const PRED = scalarType('pred');

interface Geometry {
  /** Coordinates besides the layer. */
  dimensions: number;
  layered: boolean;
  cube: boolean;
}

const GEOMETRIES: Readonly<Record<string, Geometry>> = {
  '1d': { dimensions: 1, layered: false, cube: false },
  '2d': { dimensions: 2, layered: false, cube: false },
  '3d': { dimensions: 3, layered: false, cube: false },
  a1d: { dimensions: 1, layered: true, cube: false },
  a2d: { dimensions: 2, layered: true, cube: false },
  cube: { dimensions: 3, layered: false, cube: true },
  acube: { dimensions: 3, layered: true, cube: true },
};

function geometryOf(e: Emitter): Geometry {
  const name = e.inst.modifiers.find((modifier) => modifier in GEOMETRIES);
  if (name === undefined) throw e.unsupported();
  return GEOMETRIES[name]!;
}

const code = ({ dimensions, layered, cube }: Geometry): number =>
  dimensions | (layered ? GEOMETRY.layered : 0) | (cube ? GEOMETRY.cube : 0);

/** A local with the address of an operand's descriptor; a fault if there is none. */
function descriptor(e: Emitter, handle: Arg, kind: keyof typeof TEXTURE_KIND): number {
  const found = e.temp('i32');
  pushHandle(e, handle);
  e.code.i32(TEXTURE_KIND[kind]).get(e.ctx).get(e.thread).i32(e.line);
  e.call('texture');
  e.code.tee(found).op('i32.eqz');
  e.when(() => {
    e.leaveFaulted();
  });
  return found;
}

/**
 * A register contains the handle; a .texref, .samplerref or .surfref variable is a cell that
 * contains it.
 */
function pushHandle(e: Emitter, handle: Arg): void {
  if (handle.kind === 'address' && handle.base) {
    e.push({ kind: 'register', register: handle.base, at: handle.at }, U64);
    if (handle.offset) throw e.semantic('a handle has no offset', handle.at);
    return;
  }
  if (handle.kind === 'register') {
    e.push(handle, U64);
    return;
  }
  const cell: Arg =
    handle.kind === 'symbol'
      ? {
          kind: 'address',
          base: undefined,
          symbol: handle.symbol,
          offset: handle.offset,
          extra: [],
          at: handle.at,
        }
      : handle;
  const place = checkedPlace(e, cell, 8, 'generic');
  e.code.get(place.local).memory('i64.load', place.offset);
}

interface Site {
  /** Locals of the texture's and the sampler's descriptors. */
  image: number;
  sampler: number;
  coordinates: readonly Arg[];
}

/** `[texture, {coordinates}]` or `[texture, sampler, {coordinates}]`. */
function site(e: Emitter, arg: Arg, kind: keyof typeof TEXTURE_KIND): Site {
  if (arg.kind !== 'address' || arg.extra.length < 1 || arg.extra.length > 2)
    throw e.semantic('expected [object, {coordinates}]', arg.at);
  const image = descriptor(e, arg, kind);
  const sampler = arg.extra.length === 2 ? descriptor(e, arg.extra[0]!, kind) : image;
  const last = arg.extra.at(-1)!;
  return { image, sampler, coordinates: last.kind === 'vector' ? last.elements : [last] };
}

/** Pushes the layer, then x, y and z; absent ones are zero. */
function pushCoordinates(
  e: Emitter,
  { coordinates }: Site,
  geometry: Geometry,
  type: ScalarType,
): void {
  const needed = geometry.dimensions + (geometry.layered ? 1 : 0);
  // Vectors have one, two or four elements: the others are padding.
  if (coordinates.length < needed || coordinates.length > 4)
    throw e.semantic(`this geometry takes ${needed} coordinates, found ${coordinates.length}`);
  const rest = geometry.layered ? coordinates.slice(1) : coordinates;
  if (geometry.layered) e.push(coordinates[0]!, B32);
  else e.code.i32(0);
  for (let axis = 0; axis < 3; axis++) {
    if (axis < geometry.dimensions) e.push(rest[axis]!, type);
    else if (type === F32) e.code.f32(0);
    else e.code.i32(0);
  }
}

/**
 * Pops four words into the result: a vector, or a vector and a predicate that is set if the texel
 * exists.
 */
function popTexel(e: Emitter): void {
  const words = [0, 1, 2, 3].map(() => e.temp('i32'));
  for (const word of [...words].reverse()) e.code.set(word);
  let target = e.arg(0);
  let resident: Arg | undefined;
  if (target.kind === 'pair') {
    resident = target.second;
    target = target.first;
  }
  const [type] = e.types();
  const packed = type?.name === 'f16x2';
  const count = packed ? 2 : 4;
  if (target.kind !== 'vector' || target.elements.length !== count)
    throw e.semantic(`expected a vector of ${count}`, target.at);
  target.elements.forEach((element, index) => {
    if (packed) {
      for (const half of [0, 1]) {
        e.code
          .get(words[2 * index + half]!)
          .op('f32.reinterpret_i32')
          .op('f64.promote_f32');
        e.call('f64_to_f16');
        if (half) e.code.i32(16).op('i32.shl').op('i32.or');
      }
    } else {
      e.code.get(words[index]!);
    }
    e.pop(element, B32);
  });
  if (resident) {
    e.code.i32(1);
    e.pop(resident, PRED);
  }
}

function offsets(e: Emitter, operands: readonly Arg[], count: number): void {
  const [arg, ...more] = operands;
  // Any other operand is a reference value for a depth comparison.
  if (more.length || (arg && arg.kind !== 'vector')) throw e.unsupported('a depth comparison is');
  for (let axis = 0; axis < count; axis++) {
    const element = arg?.kind === 'vector' ? arg.elements[axis] : undefined;
    if (element && element.kind !== 'sink') e.push(element, S32);
    else e.code.i32(0);
  }
}

export function fetch(e: Emitter): void {
  e.allow(...Object.keys(GEOMETRIES), 'v4', 'v2', 'level', 'grad', 'base');
  const geometry = geometryOf(e);
  const [result, coordinate] = e.types();
  if (
    !result ||
    !coordinate ||
    !['f32', 's32'].includes(coordinate.name) ||
    !['f32', 's32', 'u32', 'f16x2'].includes(result.name)
  )
    throw e.unsupported();
  e.argCount(2, 6);
  const where = site(e, e.arg(1), 'texture');
  const rest = e.inst.args.slice(2 + (e.has('level') ? 1 : e.has('grad') ? 2 : 0));
  if (e.around.check) emitCallerCheck(e);
  e.code.get(e.ctx).get(where.image).get(where.sampler).i32(code(geometry));
  if (coordinate === S32) {
    if (geometry.cube) throw e.unsupported();
    if (rest.length) throw e.unsupported('an offset is');
    pushCoordinates(e, where, geometry, S32);
    e.call('tex_s32');
  } else {
    pushCoordinates(e, where, geometry, F32);
    if (geometry.cube) {
      if (rest.length) throw e.unsupported('an offset is');
      e.call('tex_cube');
    } else {
      offsets(e, rest, 3);
      e.call('tex_f32');
    }
  }
  popTexel(e);
}

export function gather(e: Emitter): void {
  e.allow('r', 'g', 'b', 'a', '2d', 'a2d', 'v4');
  const geometry = geometryOf(e);
  const channel = ['r', 'g', 'b', 'a'].findIndex((name) => e.has(name));
  if (channel < 0) throw e.semantic("'tld4' needs .r, .g, .b or .a");
  e.argCount(2, 4);
  const where = site(e, e.arg(1), 'texture');
  if (e.around.check) emitCallerCheck(e);
  e.code.get(e.ctx).get(where.image).get(where.sampler).i32(code(geometry));
  const layer = e.temp('i32');
  const x = e.temp('f32');
  const y = e.temp('f32');
  pushCoordinates(e, where, geometry, F32);
  e.code.op('drop').set(y).set(x).set(layer).get(layer).i32(channel).get(x).get(y);
  offsets(e, e.inst.args.slice(2), 2);
  e.call('tex_gather');
  popTexel(e);
}

const CHANNEL_ORDERS = [0, 0x10b0, 0x10b2, 0x10b4, 0x10b5];
/** wrap, clamp_to_edge, mirror, clamp_to_border, by PTX's numbers. */
const ADDRESS_MODES = [0, 3, 1, 4];

/** Pushes the entry of a short table; the index is on the stack. */
function pushFromTable(e: Emitter, table: readonly number[]): void {
  const index = e.temp('i32');
  e.code.set(index).i32(0);
  table.forEach((value, at) => {
    e.code.get(index).i32(at).op('i32.eq').i32(value).op('i32.mul').op('i32.or');
  });
}

export function query(kind: keyof typeof TEXTURE_KIND) {
  return (e: Emitter): void => {
    e.argCount(2, 3);
    const from = descriptor(e, e.arg(1), kind);
    const field = (offset: number): void => {
      e.code.get(from).memory('i32.load', offset);
    };
    const whenLayered = (layered: boolean): void => {
      field(TEXTURE.depth);
      e.code.i32(0);
      field(TEXTURE.layered);
      if (!layered) e.code.op('i32.eqz');
      e.code.op('select');
    };
    const queries: Readonly<Record<string, () => void>> = {
      width: () => {
        field(TEXTURE.width);
      },
      height: () => {
        field(TEXTURE.height);
      },
      depth: () => {
        whenLayered(false);
      },
      array_size: () => {
        whenLayered(true);
      },
      channel_data_type: () => {
        e.code.get(from);
        e.call('channel_type');
      },
      channel_order: () => {
        field(TEXTURE.channels);
        pushFromTable(e, CHANNEL_ORDERS);
      },
      normalized_coords: () => {
        field(TEXTURE.flags);
        e.code.i32(1).op('i32.shr_u').i32(1).op('i32.and');
      },
      force_unnormalized_coords: () => {
        field(TEXTURE.flags);
        e.code.i32(2).op('i32.and').op('i32.eqz');
      },
      filter_mode: () => {
        field(TEXTURE.filter);
      },
      num_mipmap_levels: () => {
        e.code.i32(1);
      },
      num_samples: () => {
        e.code.i32(1);
      },
      // Pitch linear.
      memory_layout: () => {
        e.code.i32(0);
      },
      ...Object.fromEntries(
        [0, 1, 2].map((axis) => [
          `addr_mode_${axis}`,
          () => {
            field(TEXTURE.addressMode + 4 * axis);
            pushFromTable(e, ADDRESS_MODES);
          },
        ]),
      ),
    };
    const name = e.inst.modifiers.find((modifier) => modifier in queries);
    if (name === undefined) throw e.unsupported();
    queries[name]!();
    e.pop(e.arg(0), B32);
  };
}

/**
 * The place of a surface operand, in a local; 0 if there is none. Traps if the instruction does so.
 * `access` is the kind of access.
 */
function surfacePlace(
  e: Emitter,
  arg: Arg,
  bytes: number,
  access: number,
): { image: number; place: number } {
  const geometry = geometryOf(e);
  if (geometry.cube) throw e.unsupported();
  const where = site(e, arg, 'surface');
  const place = e.temp('i32');
  const [layer, x, y, z] = [e.temp('i32'), e.temp('i32'), e.temp('i32'), e.temp('i32')];
  pushCoordinates(e, where, geometry, S32);
  e.code.set(z).set(y).set(x).set(layer);
  e.code.get(e.ctx).get(where.image).get(x);
  // .p counts texels, .b bytes.
  if (e.has('p')) e.code.get(where.image).memory('i32.load', TEXTURE.texelBytes).op('i32.mul');
  e.code.get(y).get(geometry.layered ? layer : z);
  if (bytes) e.code.i32(bytes);
  else e.code.get(where.image).memory('i32.load', TEXTURE.texelBytes);
  e.code.i32(e.has('clamp') ? 1 : 0);
  e.call('surface_place');
  e.code.set(place);
  if (!e.has('zero')) {
    e.code.get(place).op('i32.eqz');
    // A place between two units is invalid, as one outside is.
    if (bytes)
      e.code
        .get(place)
        .i32(bytes - 1)
        .op('i32.and')
        .op('i32.or');
    e.when(() => {
      e.code.get(e.ctx).get(e.thread).i32(e.line);
      e.call('fault_trap');
      e.leaveFaulted();
    });
  }
  if (e.around.check) {
    e.code.get(place);
    e.when(() => {
      emitTouch(
        e,
        { local: place, offset: 0 },
        bytes ||
          (() => {
            e.code.get(where.image).memory('i32.load', TEXTURE.texelBytes);
          }),
        access,
      );
    });
  }
  return { image: where.image, place };
}

function units(e: Emitter, arg: Arg): readonly Arg[] {
  const width = Number((e.oneOf('v2', 'v4') ?? 'v1').slice(1));
  const elements = arg.kind === 'vector' ? arg.elements : [arg];
  if (elements.length !== width)
    throw e.semantic(`expected ${width} register${width === 1 ? '' : 's'}`, arg.at);
  return elements;
}

const SURFACE_MODIFIERS = [
  'b',
  'p',
  '1d',
  '2d',
  '3d',
  'a1d',
  'a2d',
  'v2',
  'v4',
  'trap',
  'clamp',
  'zero',
  'ca',
  'cg',
  'cs',
  'cv',
  'wb',
  'wt',
];

export function surfaceLoad(e: Emitter): void {
  e.allow(...SURFACE_MODIFIERS);
  e.argCount(2);
  if (!e.has('b')) throw e.unsupported();
  const type = e.type();
  const elements = units(e, e.arg(0));
  const bytes = type.bits / 8;
  const { place } = surfacePlace(e, e.arg(1), bytes * elements.length, ACCESS.read);
  const values = elements.map(() => {
    const value = e.temp(type.wasm);
    if (type.wasm === 'i64') e.code.i64(0);
    else e.code.i32(0);
    e.code.set(value);
    return value;
  });
  e.code.get(place);
  e.when(() => {
    values.forEach((value, index) => {
      e.code
        .get(place)
        .memory(loadName(type, false), index * bytes)
        .set(value);
    });
  });
  elements.forEach((element, index) => {
    e.code.get(values[index]!);
    e.pop(element, type, 'wide');
  });
}

export function surfaceStore(e: Emitter): void {
  e.allow(...SURFACE_MODIFIERS);
  e.argCount(2);
  const type = e.type();
  const elements = units(e, e.arg(1));
  const formatted = e.has('p');
  if (formatted && type.name !== 'b32') throw e.unsupported();
  const bytes = type.bits / 8;
  const { image, place } = surfacePlace(
    e,
    e.arg(0),
    formatted ? 0 : bytes * elements.length,
    ACCESS.write,
  );
  e.code.get(place);
  e.when(() => {
    elements.forEach((element, index) => {
      if (formatted) {
        e.code.get(image).get(place).i32(index);
        e.push(element, B32);
        e.call('store_channel');
      } else {
        e.code.get(place);
        e.push(element, type, 'wide');
        e.code.memory(storeName(type, false), index * bytes);
      }
    });
  });
}

export function surfaceReduce(e: Emitter): void {
  const operation = e.oneOf('add', 'min', 'max', 'and', 'or');
  e.allow(...SURFACE_MODIFIERS, 'add', 'min', 'max', 'and', 'or');
  if (!operation) throw e.unsupported();
  e.argCount(2);
  const type = e.type();
  const bytes = type.bits / 8;
  if (bytes < 4) throw e.unsupported();
  const signed = type.kind === 'signed' ? 1 : 3;
  const number = { add: 0, min: signed, max: signed + 1, and: 5, or: 6 }[operation];
  const { place } = surfacePlace(e, e.arg(0), bytes, ACCESS.atomic | ACCESS.strong);
  e.code.get(place);
  e.when(() => {
    e.code.get(place);
    e.push(e.arg(1), type);
    e.code.i32(number);
    e.call(`surface_reduce_${type.wasm}`);
  });
}

export function isType(e: Emitter): void {
  e.allow('texref', 'samplerref', 'surfref');
  e.argCount(2);
  pushHandle(e, e.arg(1));
  // A sampler is the part of a texture object that describes how to read.
  e.code.i32(TEXTURE_KIND[e.has('surfref') ? 'surface' : 'texture']).get(e.ctx);
  e.call('is_texture');
  e.pop(e.arg(0), PRED);
}
