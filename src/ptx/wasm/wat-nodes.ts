// The nested lists that WAT consists of, and its literals.

export type Node = string | Node[];

export function parse(text: string): Node[] {
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

export function readFloat(text: string): number {
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

export function parseInteger(text: string): bigint {
  return text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text);
}
