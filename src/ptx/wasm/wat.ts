// A small assembler for the folded text form, so that run-time functions are written as readable
// WAT. Beyond WAT's own folded syntax it takes short operands: `$x` reads a local, `5` is an i32,
// `5L` an i64, `1.5d` an f64 and `1.5f` an f32. Only what the run-time functions use is understood.

import type { LocalType } from '../scalar-types.js';
import { Code } from './code.js';
import { accessWidth, isOpcode } from './opcodes.js';
import type { Signature } from './module.js';
import { VALUE_TYPE } from './module.js';

type Node = string | Node[];

export interface WatFunction {
  name: string;
  signature: Signature<LocalType>;
  locals: readonly LocalType[];
  /** Functions it calls. */
  calls: readonly string[];
  assemble(links: WatLinks): Uint8Array;
}

export interface WatLinks {
  functionIndex(name: string): number;
  globalIndex(name: string): number;
}

function parse(text: string): Node[] {
  const root: Node[] = [];
  const stack: Node[][] = [root];
  const token = /;;[^\n]*|\s+|([()])|([^\s();]+)/y;
  while (token.lastIndex < text.length) {
    const at = token.lastIndex;
    const match = token.exec(text);
    if (!match) throw new SyntaxError(`wat: cannot read ${text.slice(at, at + 20)}`);
    const top = stack.at(-1)!;
    if (match[1] === '(') {
      const list: Node[] = [];
      top.push(list);
      stack.push(list);
    } else if (match[1] === ')') {
      stack.pop();
      if (!stack.length) throw new SyntaxError('wat: unbalanced )');
    } else if (match[2] !== undefined) {
      top.push(match[2]);
    }
  }
  if (stack.length !== 1) throw new SyntaxError('wat: unbalanced (');
  return root;
}

function readFloat(text: string): number {
  const hex = /^(-?)0x([0-9a-f]+)(?:\.([0-9a-f]*))?p([+-]?\d+)$/i.exec(text);
  if (hex) {
    const fraction = hex[3] ?? '';
    const mantissa = parseInt(hex[2]! + fraction, 16);
    return (hex[1] ? -1 : 1) * mantissa * 2 ** (Number(hex[4]) - 4 * fraction.length);
  }
  if (text === 'inf') return Infinity;
  if (text === '-inf') return -Infinity;
  if (text === 'nan') return NaN;
  return Number(text);
}

/** All functions of a text: `(func $name (param $a i32) (result i32) (local $x f64) …)`. */
export function parseWat(text: string): WatFunction[] {
  return parse(text).map((node) => {
    if (!Array.isArray(node) || node[0] !== 'func') throw new SyntaxError('wat: expected (func');
    const name = (node[1] as string).slice(1);
    const params: LocalType[] = [];
    const results: LocalType[] = [];
    const locals: LocalType[] = [];
    const names = new Map<string, number>();
    let at = 2;
    for (; at < node.length; at++) {
      const part = node[at]!;
      if (!Array.isArray(part)) break;
      if (part[0] === 'result') {
        results.push(...(part.slice(1) as LocalType[]));
      } else if (part[0] === 'param' || part[0] === 'local') {
        // (local $a $b $c f64) declares three.
        const type = part.at(-1) as LocalType;
        for (const local of part.slice(1, -1) as string[]) {
          names.set(local, names.size);
          (part[0] === 'param' ? params : locals).push(type);
        }
      } else {
        break;
      }
    }
    const body = node.slice(at);
    const calls = new Set<string>();
    const visit = (part: Node): void => {
      if (!Array.isArray(part)) return;
      if (part[0] === 'call') calls.add((part[1] as string).slice(1));
      part.forEach(visit);
    };
    body.forEach(visit);
    return {
      name,
      signature: { params, results },
      locals,
      calls: [...calls],
      assemble: (links) => assemble(body, names, links, name),
    };
  });
}

/**
 * The functions of some texts, each read when it is first asked for: a module calls few of them.
 */
export class WatLibrary {
  private readonly texts = new Map<string, string>();
  private readonly functions = new Map<string, WatFunction>();

  constructor(texts: readonly string[]) {
    for (const text of texts) {
      const heads = [...text.matchAll(/\(func \$([^\s()]+)/g)];
      heads.forEach((head, i) =>
        this.texts.set(head[1]!, text.slice(head.index, heads[i + 1]?.index)),
      );
    }
  }

  get(name: string): WatFunction | undefined {
    let fn = this.functions.get(name);
    const text = fn === undefined ? this.texts.get(name) : undefined;
    if (text !== undefined) this.functions.set(name, (fn = parseWat(text)[0]!));
    return fn;
  }
}

function assemble(
  body: Node[],
  locals: Map<string, number>,
  links: WatLinks,
  name: string,
): Uint8Array {
  const code = new Code();
  emitNodes(code, body, locals, links, name);
  return code.op('end').finish();
}

const parsed = new Map<string, Node[]>();
const NO_LINKS: WatLinks = {
  functionIndex: (name) => {
    throw new SyntaxError(`wat: $${name} is called from within other code`);
  },
  globalIndex: (name) => {
    throw new SyntaxError(`wat: $${name} is named from within other code`);
  },
};

/**
 * Writes a text's instructions into other code, which has these locals for the names in it. Nothing
 * is called.
 */
export function emitWat(code: Code, text: string, locals: Readonly<Record<string, number>>): void {
  let body = parsed.get(text);
  if (!body) parsed.set(text, (body = parse(text)));
  emitNodes(code, body, new Map(Object.entries(locals)), NO_LINKS, 'other code');
}

function emitNodes(
  code: Code,
  body: readonly Node[],
  locals: ReadonlyMap<string, number>,
  links: WatLinks,
  name: string,
): void {
  const labels: string[] = [];
  const local = (text: string): number => {
    const index = locals.get(text);
    if (index === undefined) throw new SyntaxError(`wat: ${name} has no local ${text}`);
    return index;
  };
  const depth = (label: string): number => {
    const index = labels.lastIndexOf(label);
    if (index < 0) throw new SyntaxError(`wat: ${name} has no label ${label}`);
    return labels.length - 1 - index;
  };
  const blockType = (part: Node | undefined): number | undefined =>
    Array.isArray(part) && part[0] === 'result' ? VALUE_TYPE[part[1] as LocalType] : undefined;

  const emit = (node: Node): void => {
    if (!Array.isArray(node)) {
      if (node.startsWith('$')) code.get(local(node));
      else if (/^-?(0x[0-9a-f]+|\d+)L$/i.test(node)) code.i64(parseInteger(node.slice(0, -1)));
      else if (/^-?(0x[0-9a-f]+|\d+)$/i.test(node))
        code.i32(Number(BigInt.asIntN(32, parseInteger(node))));
      else if (node.endsWith('d')) code.f64(readFloat(node.slice(0, -1)));
      else if (node.endsWith('f')) code.f32(readFloat(node.slice(0, -1)));
      else code.op(node);
      return;
    }
    const head = node[0] as string;
    const rest = node.slice(1);
    switch (head) {
      case 'local.get':
        code.get(local(rest[0] as string));
        return;
      case 'local.set':
      case 'local.tee':
        rest.slice(1).forEach(emit);
        if (head === 'local.set') code.set(local(rest[0] as string));
        else code.tee(local(rest[0] as string));
        return;
      case 'global.get':
        code.op(head).u32(links.globalIndex((rest[0] as string).slice(1)));
        return;
      case 'global.set':
        rest.slice(1).forEach(emit);
        code.op(head).u32(links.globalIndex((rest[0] as string).slice(1)));
        return;
      case 'call':
        rest.slice(1).forEach(emit);
        code.op('call').u32(links.functionIndex((rest[0] as string).slice(1)));
        return;
      case 'block':
      case 'loop': {
        const named = typeof rest[0] === 'string' && rest[0].startsWith('$');
        labels.push(named ? (rest.shift() as string) : '');
        const type = blockType(rest[0]);
        if (type !== undefined) rest.shift();
        code.op(head).byte(type ?? 0x40);
        rest.forEach(emit);
        code.op('end');
        labels.pop();
        return;
      }
      case 'if': {
        const type = blockType(rest[0]);
        if (type !== undefined) rest.shift();
        const arms = rest.filter(
          (part) => Array.isArray(part) && (part[0] === 'then' || part[0] === 'else'),
        ) as Node[][];
        rest.filter((part) => !arms.includes(part as Node[])).forEach(emit);
        code.op('if').byte(type ?? 0x40);
        labels.push('');
        arms[0]!.slice(1).forEach(emit);
        if (arms[1]) {
          code.op('else');
          arms[1].slice(1).forEach(emit);
        }
        code.op('end');
        labels.pop();
        return;
      }
      case 'br':
      case 'br_if':
        rest.slice(1).forEach(emit);
        code.op(head).u32(depth(rest[0] as string));
        return;
      case 'br_table': {
        const targets = rest.filter(
          (part) => typeof part === 'string' && labels.includes(part),
        ) as string[];
        rest.filter((part) => !targets.includes(part as string)).forEach(emit);
        code.op(head).u32(targets.length - 1);
        for (const target of targets) code.u32(depth(target));
        return;
      }
      case 'i64.const':
        code.i64(parseInteger(rest[0] as string));
        return;
      case 'i32.const':
        code.i32(Number(BigInt.asIntN(32, parseInteger(rest[0] as string))));
        return;
      case 'f64.const':
        code.f64(readFloat(rest[0] as string));
        return;
      case 'f32.const':
        code.f32(readFloat(rest[0] as string));
        return;
      case 'i32x4.extract_lane':
      case 'i64x2.extract_lane':
      case 'i32x4.replace_lane':
      case 'i64x2.replace_lane':
      case 'f32x4.extract_lane':
      case 'f32x4.replace_lane':
      case 'f64x2.extract_lane':
      case 'f64x2.replace_lane': {
        const lane = Number(rest.shift());
        rest.forEach(emit);
        code.lane(head, lane);
        return;
      }
      case 'i8x16.shuffle': {
        // Of four lanes of 32 bits, as everywhere in this compiler.
        const lanes = rest.splice(0, 4).map(Number) as [number, number, number, number];
        rest.forEach(emit);
        code.shuffle(lanes);
        return;
      }
      case 'memory.fill':
        rest.forEach(emit);
        code.op(head).byte(0);
        return;
      case 'memory.copy':
        rest.forEach(emit);
        code.op(head).byte(0).byte(0);
        return;
    }
    if (!isOpcode(head)) throw new SyntaxError(`wat: ${name}: no instruction ${head}`);
    let offset = 0;
    if (typeof rest[0] === 'string' && rest[0].startsWith('offset='))
      offset = Number((rest.shift() as string).slice(7));
    rest.forEach(emit);
    code.op(head);
    if (/\.(load|store|atomic\.(load|store|rmw))/.test(head))
      code.u32(accessWidth(head)).u32(offset);
  };
  body.forEach(emit);
}

function parseInteger(text: string): bigint {
  return text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text);
}
