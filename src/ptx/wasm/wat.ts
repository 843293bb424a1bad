// A small assembler for the folded text form, in which the run-time functions are written. In
// addition to WAT's folded syntax it takes short operands: `$x` reads a local, `5` is an i32, `5L`
// an i64, `1.5d` an f64 and `1.5f` an f32. It supports only what the run-time functions use.

import type { LocalType } from '../scalar-types.js';
import { Code } from './code.js';
import type { Signature } from './signature.js';
import { parse } from './wat-nodes.js';
import type { Node } from './wat-nodes.js';
import { WatWriter } from './wat-writer.js';
import type { WatLinks } from './wat-writer.js';

export interface WatFunction {
  name: string;
  signature: Signature<LocalType>;
  locals: readonly LocalType[];
  /** The functions that it calls. */
  calls: readonly string[];
  assemble(links: WatLinks): Uint8Array;
}

/** Parses all functions of a text: `(func $name (param $a i32) (result i32) (local $x f64) …)`. */
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
      assemble: (links) => {
        const code = new Code({
          local: (index) => params[index] ?? locals[index - params.length],
          global: (index) => links.globalType(index),
          function: (index) => links.signature(index),
          results: () => results,
        });
        new WatWriter(code, names, links, name).write(body);
        return code.op('end').finish();
      },
    };
  });
}

/** The functions of some texts. Each is parsed at its first use: a module calls few of them. */
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

const parsed = new Map<string, Node[]>();
const NO_LINKS: WatLinks = {
  functionIndex: (name) => {
    throw new SyntaxError(`wat: $${name} is called from within other code`);
  },
  globalIndex: (name) => {
    throw new SyntaxError(`wat: $${name} is named from within other code`);
  },
  signature: () => undefined,
  globalType: () => undefined,
};

/**
 * Writes a text's instructions into other code. `locals` gives the locals for the names in the
 * text, which may not contain calls.
 */
export function emitWat(code: Code, text: string, locals: Readonly<Record<string, number>>): void {
  let body = parsed.get(text);
  if (!body) parsed.set(text, (body = parse(text)));
  new WatWriter(code, new Map(Object.entries(locals)), NO_LINKS, 'other code').write(body);
}
