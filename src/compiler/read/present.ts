/** acorn gives null for a part of a node that does not exist; its types allow undefined too. */
export function isPresent<T>(part: T | null | undefined): part is T {
  return part !== null && part !== undefined;
}
