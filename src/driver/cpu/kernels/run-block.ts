/** Runs one block; see the contract of the PTX compiler. */
export type RunBlock = (ctx: number, fuel: number) => number;
