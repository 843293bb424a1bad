/** The reason why TensorRT's thread refused a request. */
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
  /** The parser's own name of the problem: UNSUPPORTED_NODE. */
  readonly code: string;
  readonly message: string;
  /** Index in the graph, -1 where the problem is not about a node. */
  readonly node: number;
  readonly nodeName?: string;
  /** The node's operator: Conv. */
  readonly operator?: string;
  /** The place in the parser's source. */
  readonly at: string;
}

export interface RefusalDetails {
  /** The call of TensorRT that failed. */
  readonly call?: string;
  /** TensorRT's messages during the call. */
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
