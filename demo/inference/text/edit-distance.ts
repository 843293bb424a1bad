/** How far what was read is from what is written. */

/**
 * The fewest characters to insert, delete or replace that make one text of the other (Levenshtein,
 * 1966).
 */
export function editDistance(a: string, b: string): number {
  const [from, to] = [[...a], [...b]];
  let row = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (const [i, mark] of from.entries()) {
    const next = [i + 1];
    for (const [j, other] of to.entries())
      next.push(Math.min(row[j]! + (mark === other ? 0 : 1), row[j + 1]! + 1, next[j]! + 1));
    row = next;
  }
  return row[to.length]!;
}
