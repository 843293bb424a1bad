// Assembles functions into one WebAssembly module. All imports have to be made before the first
// function is reserved, because the two share an index space.

import type { LocalType, WasmType } from '../scalar-types.js';
import { Bytes } from './bytes.js';
import { Code } from './code.js';
import { VALUE_TYPE } from './signature.js';
import type { Signature } from './signature.js';

interface FunctionSlot {
  name: string;
  type: number;
  locals: readonly LocalType[];
  code: Uint8Array | undefined;
  exportName: string | undefined;
}

export class ModuleBuilder {
  private readonly types: string[] = [];
  private readonly typeBytes: Uint8Array[] = [];
  private readonly importBytes: Uint8Array[] = [];
  private readonly functions: FunctionSlot[] = [];
  private readonly signatures: Signature<LocalType>[] = [];
  private readonly globalTypes: WasmType[] = [];
  private importedFunctions = 0;
  private importedGlobals = 0;

  typeIndex(signature: Signature<LocalType>): number {
    const key = `${signature.params.join()}>${signature.results.join()}`;
    const known = this.types.indexOf(key);
    if (known >= 0) return known;
    const code = new Bytes().byte(0x60).u32(signature.params.length);
    for (const param of signature.params) code.byte(VALUE_TYPE[param]);
    code.u32(signature.results.length);
    for (const result of signature.results) code.byte(VALUE_TYPE[result]);
    this.typeBytes.push(code.finish());
    return this.types.push(key) - 1;
  }

  importMemory(module: string, name: string): void {
    // The memory is shared and has 1 page to 4 GiB: memory of any size that the caller has made
    // fits.
    this.importBytes.push(
      new Bytes().name(module).name(name).byte(2).byte(3).u32(1).u32(65536).finish(),
    );
  }

  importGlobal(module: string, name: string, type: WasmType): number {
    this.importBytes.push(
      new Bytes().name(module).name(name).byte(3).byte(VALUE_TYPE[type]).byte(0).finish(),
    );
    this.importedGlobals++;
    return this.globalTypes.push(type) - 1;
  }

  importFunction(module: string, name: string, signature: Signature): number {
    if (this.functions.length) throw new Error('imports come before functions');
    this.importBytes.push(
      new Bytes().name(module).name(name).byte(0).u32(this.typeIndex(signature)).finish(),
    );
    this.signatures.push(signature);
    return this.importedFunctions++;
  }

  /** A mutable global that starts at zero. */
  global(type: WasmType): number {
    return this.globalTypes.push(type) - 1;
  }

  reserve(name: string, signature: Signature<LocalType>, exportName?: string): number {
    this.functions.push({
      name,
      type: this.typeIndex(signature),
      locals: [],
      code: undefined,
      exportName,
    });
    return this.signatures.push(signature) - 1;
  }

  /** The signature of an imported or reserved function. */
  signature(index: number): Signature<LocalType> | undefined {
    return this.signatures[index];
  }

  globalType(index: number): WasmType | undefined {
    return this.globalTypes[index];
  }

  define(index: number, locals: readonly LocalType[], code: Uint8Array): void {
    const slot = this.functions[index - this.importedFunctions]!;
    slot.locals = locals;
    slot.code = code;
  }

  finish(): Uint8Array {
    const out = new Bytes().append(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
    const section = (id: number, content: Bytes): void => {
      out.byte(id).u32(content.length).append(content.finish());
    };
    const list = (entries: readonly Uint8Array[]): Bytes => {
      const code = new Bytes().u32(entries.length);
      for (const entry of entries) code.append(entry);
      return code;
    };
    section(1, list(this.typeBytes));
    section(2, list(this.importBytes));
    section(3, list(this.functions.map((slot) => new Bytes().u32(slot.type).finish())));
    const globals = this.globalTypes.slice(this.importedGlobals);
    if (globals.length) {
      section(
        6,
        list(
          globals.map((type) => {
            const code = new Code().byte(VALUE_TYPE[type]).byte(1);
            if (type === 'i32') code.i32(0);
            else if (type === 'i64') code.i64(0n);
            else if (type === 'f32') code.f32(0);
            else code.f64(0);
            return code.byte(0x0b).finish();
          }),
        ),
      );
    }
    section(
      7,
      list(
        this.functions.flatMap((slot, index) =>
          slot.exportName === undefined
            ? []
            : [
                new Bytes()
                  .name(slot.exportName)
                  .byte(0)
                  .u32(this.importedFunctions + index)
                  .finish(),
              ],
        ),
      ),
    );
    section(
      10,
      list(
        this.functions.map((slot) => {
          if (!slot.code) throw new Error(`function ${slot.name} was never defined`);
          const body = new Bytes();
          const runs: [number, LocalType][] = [];
          for (const type of slot.locals) {
            const last = runs.at(-1);
            if (last && last[1] === type) last[0]++;
            else runs.push([1, type]);
          }
          body.u32(runs.length);
          for (const [count, type] of runs) body.u32(count).byte(VALUE_TYPE[type]);
          body.append(slot.code);
          return new Bytes().u32(body.length).append(body.finish()).finish();
        }),
      ),
    );
    // Names of functions: stack traces and profiles of WebAssembly then contain the PTX's names.
    const names = list(
      this.functions.map((slot, index) =>
        new Bytes()
          .u32(this.importedFunctions + index)
          .name(slot.name)
          .finish(),
      ),
    );
    section(0, new Bytes().name('name').byte(1).u32(names.length).append(names.finish()));
    return out.finish();
  }
}
