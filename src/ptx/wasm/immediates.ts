// What stands behind an opcode in a function's bytes.

interface Operands {
  /** LEB128s. */
  numbers: number;
  bytes: number;
}

/** Of an opcode without a prefix. */
export function operands(opcode: number): Operands {
  const one =
    (opcode >= 0x02 && opcode <= 0x04) ||
    opcode === 0x0c ||
    opcode === 0x0d ||
    opcode === 0x10 ||
    (opcode >= 0x20 && opcode <= 0x24) ||
    (opcode >= 0x3f && opcode <= 0x42);
  if (one) return { numbers: 1, bytes: 0 };
  if (opcode === 0x11 || (opcode >= 0x28 && opcode <= 0x3e)) return { numbers: 2, bytes: 0 };
  if (opcode === 0x43) return { numbers: 0, bytes: 4 };
  if (opcode === 0x44) return { numbers: 0, bytes: 8 };
  return { numbers: 0, bytes: 0 };
}

/** Of an opcode behind 0xfd. */
export function vectorOperands(opcode: number): Operands {
  if (opcode === 0x0c || opcode === 0x0d) return { numbers: 0, bytes: 16 };
  if (opcode <= 0x0b || opcode === 0x5c || opcode === 0x5d) return { numbers: 2, bytes: 0 };
  if (opcode >= 0x15 && opcode <= 0x22) return { numbers: 0, bytes: 1 };
  if (opcode >= 0x54 && opcode <= 0x5b) return { numbers: 2, bytes: 1 };
  return { numbers: 0, bytes: 0 };
}
