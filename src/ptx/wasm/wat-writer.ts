// Writes the nodes of a function in WAT as WebAssembly instructions.

import type { LocalType, WasmType } from '../scalar-types.js';
import type { Code } from './code.js';
import { accessWidth, immediateOf, isOpcode } from './opcodes.js';
import type { AccessOpcode, LaneOpcode, Opcode } from './opcodes.js';
import { VALUE_TYPE } from './signature.js';
import type { Signature } from './signature.js';
import { parseInteger, readFloat } from './wat-nodes.js';
import type { Node } from './wat-nodes.js';

/** The module that the function becomes part of. */
export interface WatLinks {
  functionIndex(name: string): number;
  globalIndex(name: string): number;
  signature(functionIndex: number): Signature<LocalType> | undefined;
  globalType(index: number): WasmType | undefined;
}

const NO_RESULT = 0x40;
const INTEGER = /^-?(0x[0-9a-f]+|\d+)$/i;

const isName = (node: Node | undefined): boolean =>
  typeof node === 'string' && node.startsWith('$');
const isList = (node: Node | undefined, head: string): node is Node[] =>
  Array.isArray(node) && node[0] === head;

export class WatWriter {
  private readonly code: Code;
  private readonly locals: ReadonlyMap<string, number>;
  private readonly links: WatLinks;
  private readonly name: string;
  /** The open blocks; '' for one without a name. */
  private readonly labels: string[] = [];

  /** @param name the function's name, for errors */
  constructor(code: Code, locals: ReadonlyMap<string, number>, links: WatLinks, name: string) {
    this.code = code;
    this.locals = locals;
    this.links = links;
    this.name = name;
  }

  write(nodes: readonly Node[]): void {
    for (const node of nodes) {
      if (!Array.isArray(node)) this.short(node);
      else if (node[0] === 'if') this.conditional(node.slice(1));
      else if (node[0] === 'block' || node[0] === 'loop') this.block(node[0], node.slice(1));
      else this.instruction(this.opcode(node[0] as string), node.slice(1));
    }
  }

  private error(message: string): SyntaxError {
    return new SyntaxError(`wat: ${this.name}${message}`);
  }

  private opcode(name: string): Opcode {
    if (!isOpcode(name)) throw this.error(`: no instruction ${name}`);
    return name;
  }

  /** A local, a literal, or an instruction that takes its operands from the stack. */
  private short(text: string): void {
    const { code } = this;
    const literal = text.slice(0, -1);
    if (isName(text)) code.get(this.local(text));
    else if (isOpcode(text)) code.op(text);
    else if (text.endsWith('L') && INTEGER.test(literal)) code.i64(parseInteger(literal));
    else if (INTEGER.test(text)) code.i32(Number(BigInt.asIntN(32, parseInteger(text))));
    else if (text.endsWith('d')) code.f64(readFloat(literal));
    else if (text.endsWith('f')) code.f32(readFloat(literal));
    else throw this.error(`: no instruction ${text}`);
  }

  private local(name: Node | undefined): number {
    const index = this.locals.get(name as string);
    if (index === undefined) throw this.error(` has no local ${String(name)}`);
    return index;
  }

  private depth(label: Node | undefined): number {
    const index = this.labels.lastIndexOf(label as string);
    if (index < 0) throw this.error(` has no label ${String(label)}`);
    return this.labels.length - 1 - index;
  }

  /** Removes the type of the result from a block's nodes. */
  private blockType(nodes: Node[]): number {
    if (!isList(nodes[0], 'result')) return NO_RESULT;
    const [, type] = nodes.shift() as Node[];
    return VALUE_TYPE[type as LocalType];
  }

  private block(opcode: 'block' | 'loop', nodes: Node[]): void {
    this.labels.push(isName(nodes[0]) ? (nodes.shift() as string) : '');
    this.code.op(opcode).byte(this.blockType(nodes));
    this.write(nodes);
    this.code.op('end');
    this.labels.pop();
  }

  private conditional(nodes: Node[]): void {
    const type = this.blockType(nodes);
    const isArm = (node: Node): node is Node[] => isList(node, 'then') || isList(node, 'else');
    const [yes, no] = nodes.filter(isArm);
    this.write(nodes.filter((node) => !isArm(node)));
    this.code.op('if').byte(type);
    this.labels.push('');
    this.write(yes!.slice(1));
    if (no) {
      this.code.op('else');
      this.write(no.slice(1));
    }
    this.code.op('end');
    this.labels.pop();
  }

  /** An instruction: the first nodes are immediates, the others operands. */
  private instruction(opcode: Opcode, nodes: Node[]): void {
    const { code } = this;
    switch (immediateOf(opcode)) {
      case 'local': {
        const local = this.local(nodes[0]);
        this.write(nodes.slice(1));
        code.op(opcode).u32(local);
        return;
      }
      case 'global': {
        this.write(nodes.slice(1));
        code.op(opcode).u32(this.links.globalIndex((nodes[0] as string).slice(1)));
        return;
      }
      case 'function': {
        this.write(nodes.slice(1));
        code.op(opcode).u32(this.links.functionIndex((nodes[0] as string).slice(1)));
        return;
      }
      case 'label':
        this.write(nodes.slice(1));
        code.op(opcode).u32(this.depth(nodes[0]));
        return;
      case 'labels':
        this.table(nodes);
        return;
      case 'integer':
      case 'f32':
      case 'f64':
        this.constant(opcode, nodes[0] as string);
        return;
      case 'lane': {
        const lane = Number(nodes[0]);
        this.write(nodes.slice(1));
        code.lane(opcode as LaneOpcode, lane);
        return;
      }
      case 'bytes':
        this.shuffle(nodes);
        return;
      case 'access': {
        const offset = /^offset=(\d+)$/.exec(String(nodes[0]))?.[1];
        this.write(offset === undefined ? nodes : nodes.slice(1));
        code
          .op(opcode)
          .u32(accessWidth(opcode as AccessOpcode))
          .u32(Number(offset ?? 0));
        return;
      }
      case 'memory':
        this.write(nodes);
        code.op(opcode);
        if (opcode !== 'atomic.fence') code.byte(0);
        return;
      case 'memories':
        this.write(nodes);
        code.op(opcode).byte(0).byte(0);
        return;
      default:
        this.write(nodes);
        code.op(opcode);
    }
  }

  private table(nodes: readonly Node[]): void {
    const isLabel = (node: Node): boolean => typeof node === 'string' && this.labels.includes(node);
    const targets = nodes.filter(isLabel);
    this.write(nodes.filter((node) => !isLabel(node)));
    this.code.op('br_table').u32(targets.length - 1);
    for (const target of targets) this.code.u32(this.depth(target));
  }

  private constant(opcode: Opcode, text: string): void {
    const { code } = this;
    if (opcode === 'i64.const') code.i64(parseInteger(text));
    else if (opcode === 'f64.const') code.f64(readFloat(text));
    else if (opcode === 'f32.const') code.f32(readFloat(text));
    else code.i32(Number(BigInt.asIntN(32, parseInteger(text))));
  }

  /** The shuffle of four lanes of 32 bits; this compiler uses no other. */
  private shuffle(nodes: readonly Node[]): void {
    const lanes = nodes.slice(0, 4).map(Number) as [number, number, number, number];
    this.write(nodes.slice(4));
    this.code.shuffle(lanes);
  }
}
