/**
 * The kernel around the body of an element kernel: it reads the elements of each output's index,
 * calls the body, and writes the results. Where elements are contiguous each thread has several in
 * a row. It reads them before the first call of the body and writes them after the last one, so
 * that each tensor is accessed by as few instructions as possible.
 */
import type { AnyNode } from 'acorn';

import { parseFunction } from '../read/parse.js';
import type { KernelSource, SignatureEntry, TextOrigin } from '../signature.js';
import { readAs } from '../storage-types.js';
import { checkElementBody } from './element-body.js';
import { ROW_NAMES, extentName } from './element-form.js';
import type { ElementForm } from './element-form.js';
import { gpuOfElements } from './gpu-of-elements.js';
import { childrenOf } from '../read/syntax.js';

interface Part {
  readonly name: string;
  readonly entry: SignatureEntry;
}

type TensorPart = Part & { readonly entry: Extract<SignatureEntry, { kind: 'tensor' }> };

const isTensor = (part: Part): part is TensorPart => part.entry.kind === 'tensor';

const typeOf = ({ entry: { element } }: TensorPart): string =>
  'storage' in element ? readAs[element.storage] : '';

/**
 * Gives the kernel of threads. `source`: the body, with the user's signature.
 *
 * @throws KernelSourceError
 */
export function elementSource(source: KernelSource, form: ElementForm): KernelSource {
  checkElementBody(source);
  const { name, signature, text, uses, indexType } = source;
  const parts = Object.entries(signature).map(([each, entry]) => ({ name: each, entry }));
  const own: Record<string, SignatureEntry> = Object.fromEntries(
    parts.map(({ name: each, entry }) => [
      each,
      entry.kind === 'tensor' ? { ...entry, rank: form.axes } : entry,
    ]),
  );
  for (let axis = 0; axis < form.coordinates; axis++)
    own[extentName(axis)] = { kind: 'scalar', storage: indexType };
  if (form.access !== undefined)
    for (const each of ROW_NAMES) own[each] = { kind: 'scalar', storage: indexType };
  const given = ['index', ...(form.coordinates > 0 ? ['coordinates'] : [])];
  const write = form.access !== undefined ? writeRows : form.axes === 1 ? writeRun : writeAxes;
  return {
    name,
    indexType,
    signature: own,
    text: `(args, gpu) => {\n${write(parts, form, indexType)}\n}`,
    uses: { element$: { text, uses, gpu: gpuOfElements(given) } },
    origin: { text, spanOf: resultSpan(text) },
  };
}

/** The span of the body's result: errors of the surrounding kernel about types concern it. */
function resultSpan(text: string): TextOrigin['spanOf'] {
  let found: { start: number; end: number } | undefined;
  return () => {
    if (found === undefined) {
      const { body } = parseFunction(text, 0).node;
      const result = body.type === 'BlockStatement' ? lastReturn(body) : body;
      found = { start: result?.start ?? 0, end: result?.end ?? text.length };
    }
    return found;
  };
}

function lastReturn(node: AnyNode): AnyNode | undefined {
  for (const child of childrenOf(node).reverse()) {
    if (
      child.type === 'FunctionDeclaration' ||
      child.type === 'FunctionExpression' ||
      child.type === 'ArrowFunctionExpression'
    )
      continue;
    const found = child.type === 'ReturnStatement' ? (child.argument ?? child) : lastReturn(child);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Writes the call of the body, with `elementOf` for each tensor that is read. */
function call(
  parts: readonly Part[],
  elementOf: (part: TensorPart) => string,
  index: string,
  form: ElementForm,
): string {
  const fields = parts.flatMap((part) => {
    if (!isTensor(part)) return [`${part.name}: args.${part.name}`];
    return part.entry.access === 'output' ? [] : [`${part.name}: ${elementOf(part)}`];
  });
  return `gpu.element$({ ${fields.join(', ')} }, ${index}${form.coordinates > 0 ? ', at$' : ''})`;
}

/** Writes the computation of the coordinates from the element's number. */
function coordinates({ coordinates: axes }: ElementForm, index: string, indexType: string): string {
  if (axes === 0) return '';
  const lines = [`const at$ = gpu.local.${indexType}(${axes});`, `let rest$ = ${index};`];
  for (let axis = axes - 1; axis > 0; axis--)
    lines.push(
      `at$[${axis}] = rest$ % args.${extentName(axis)};`,
      `rest$ = rest$ / args.${extentName(axis)};`,
    );
  lines.push('at$[0] = rest$;');
  return lines.join(' ');
}

const written = (parts: readonly Part[]): TensorPart[] =>
  parts.filter(isTensor).filter(({ entry }) => entry.access !== 'input');

/**
 * Writes the assignment of the body's result. `to` gives the destination of each output, and `as`
 * its form.
 */
function assign(
  parts: readonly Part[],
  result: string,
  to: (part: TensorPart) => string,
  as = (_: TensorPart, value: string): string => value,
): string {
  const outputs = written(parts);
  if (outputs.length === 1) return `${to(outputs[0]!)} = ${as(outputs[0]!, result)};`;
  return (
    `const result$ = ${result}; ` +
    `${outputs.map((part) => `${to(part)} = ${as(part, `result$.${part.name}`)};`).join(' ')}`
  );
}

/**
 * Narrow floats are held as f32; a wider value must not be rounded to nearest before it is stored.
 */
function held(part: TensorPart, value: string): string {
  const { element } = part.entry;
  return typeOf(part) === 'f32' && 'storage' in element && element.storage !== 'f32'
    ? `gpu.narrowly$(${value})`
    : value;
}

/** The places of a thread's elements; a tensor in `single` has one. */
interface Group {
  readonly isSingle: (part: Part) => boolean;
  /** The place of element k$. */
  readonly at: (part: TensorPart) => string;
  /** The number of element k$. */
  readonly index: string;
}

/** Writes all elements of one thread: reads, then computations, then writes. */
function writeGroup(
  parts: readonly Part[],
  form: ElementForm,
  indexType: string,
  { isSingle, at, index }: Group,
): string[] {
  const { width } = form;
  const outputs = written(parts);
  const read = parts
    .filter(isTensor)
    .filter((part) => part.entry.access !== 'output' && !isSingle(part));
  const turns = `for (let k$ = 0; k$ < ${width}; k$++)`;
  return [
    ...read.map(
      (part) =>
        `const ${part.name}$in = gpu.local.${typeOf(part)}(${width}); ${turns} ` +
        `${part.name}$in[k$] = ${at(part)};`,
    ),
    ...outputs.map((part) => `const ${part.name}$out = gpu.local.${typeOf(part)}(${width});`),
    `${turns} { const index$ = ${index}; ${coordinates(form, 'index$', indexType)}`,
    assign(
      parts,
      call(parts, (part) => (isSingle(part) ? at(part) : `${part.name}$in[k$]`), 'index$', form),
      (part) => `${part.name}$out[k$]`,
      held,
    ),
    '}',
    ...outputs.map((part) => `${turns} ${at(part)} = ${part.name}$out[k$];`),
  ];
}

/** Writes the kernel where every tensor is a run of elements, or one element. */
function writeRun(parts: readonly Part[], form: ElementForm, indexType: string): string {
  const { width, single } = form;
  const isSingle = ({ name }: Part): boolean => single.includes(name);
  const at = (part: TensorPart, index: string): string =>
    `args.${part.name}[${isSingle(part) ? '0' : index}]`;
  const lines = [
    `const { length } = args.${written(parts)[0]!.name};`,
    `const first$ = gpu.globalId.x * ${width};`,
    `if (first$ <= length - ${width}) {`,
    ...writeGroup(parts, form, indexType, {
      isSingle,
      at: (part) => at(part, 'first$ + k$'),
      index: 'first$ + k$',
    }),
    '} else {',
    'gpu.unroll(1);',
    'for (let index$ = first$; index$ < length; index$++) { ' +
      `${coordinates(form, 'index$', indexType)}`,
    assign(
      parts,
      call(parts, (part) => at(part, 'index$'), 'index$', form),
      (part) => at(part, 'index$'),
    ),
    '}',
    '}',
  ];
  return lines.join('\n');
}

/**
 * Writes the kernel over rows and columns. A thread has several columns side by side, and no column
 * is left over at the end of a row.
 */
function writeRows(parts: readonly Part[], form: ElementForm, indexType: string): string {
  const { width, access = {} } = form;
  const dense = `(row$ * args.groups$ + group$) * ${width} + k$`;
  const places = { dense, row: `group$ * ${width} + k$`, column: 'row$', one: '0' };
  const group: Group = {
    isSingle: ({ name }) => access[name] === 'column' || access[name] === 'one',
    at: ({ name }) => `args.${name}[${places[access[name]!]}]`,
    index: dense,
  };
  return [
    'const group$ = gpu.globalId.x;',
    'if (group$ < args.groups$) {',
    'for (let row$ = gpu.globalId.y; row$ < args.rows$; row$ += gpu.globalSize.y) {',
    ...writeGroup(parts, form, indexType, group),
    '}',
    '}',
  ].join('\n');
}

/** Writes the kernel for tensors of several axes, by their strides: x goes along the last one. */
function writeAxes(parts: readonly Part[], form: ElementForm, indexType: string): string {
  const { axes } = form;
  const [output] = written(parts);
  const extent = (axis: number): string => `args.${output!.name}.shape[${axis}]`;
  // z covers the axes before the last two.
  const outer = Array.from({ length: axes - 2 }, (_, axis) => `i${axis}$`);
  const indices = [...outer, 'row$', 'column$'];
  const at = (part: TensorPart): string =>
    `args.${part.name}${indices.map((index) => `[${index}]`).join('')}`;
  const planes = outer.map((_, axis) => extent(axis)).join(' * ');
  const split =
    outer.length === 2
      ? `const i0$ = plane$ / ${extent(1)}; const i1$ = plane$ % ${extent(1)};`
      : outer.length === 1
        ? 'const i0$ = plane$;'
        : '';
  const rows = `${extent(axes - 2)}`;
  const columns = `${extent(axes - 1)}`;
  const one = [
    `for (let row$ = gpu.globalId.y; row$ < ${rows}; row$ += gpu.globalSize.y) {`,
    `const index$ = (${outer.length > 0 ? `plane$ * ${rows} + ` : ''}row$) * ${columns} + ` +
      `column$; ${coordinates(form, 'index$', indexType)}`,
    assign(parts, call(parts, at, 'index$', form), at),
    '}',
  ];
  return [
    'const column$ = gpu.globalId.x;',
    `if (column$ < ${columns}) {`,
    ...(outer.length === 0
      ? one
      : [
          `for (let plane$ = gpu.globalId.z; plane$ < ${planes}; plane$ += gpu.globalSize.z) ` +
            `{ ${split}`,
          ...one,
          '}',
        ]),
    '}',
  ].join('\n');
}
