/** Why TensorRT's thread did not do what it was asked for. */
export type RefusalKind =
  | 'no-library'
  | 'unsupported'
  | 'argument'
  | 'memory'
  | 'parse'
  | 'library'
  | 'closed'
  | 'internal';

export interface ParserProblem {
  /** The parser's own name of what is wrong: UNSUPPORTED_NODE. */
  readonly code: string;
  readonly message: string;
  /** Index in the graph, -1 where it is of no node. */
  readonly node: number;
  readonly nodeName?: string;
  /** The node's operator: Conv. */
  readonly operator?: string;
  /** Where in the parser. */
  readonly at: string;
}

export interface RefusalDetails {
  /** The call of TensorRT that failed. */
  readonly call?: string;
  /** What TensorRT said meanwhile. */
  readonly said?: string;
  readonly argument?: string;
  readonly problems?: readonly ParserProblem[];
}

export class Refused extends Error {
  readonly kind: RefusalKind;
  readonly details: RefusalDetails;

  constructor(kind: RefusalKind, message: string, details: RefusalDetails = {}) {
    super(message);
    this.kind = kind;
    this.details = details;
  }
}
