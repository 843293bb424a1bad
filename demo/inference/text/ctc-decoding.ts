/**
 * What the recognition's outputs mean: connectionist temporal classification (Graves, Fernández,
 * Gomez and Schmidhuber, 2006), read greedily. A line is cut into steps from left to right; each is
 * of a character, or of none.
 */

/** The text of one line. */
export interface Reading {
  readonly text: string;
  /** The mean of how sure its characters are, 0 to 1; 0 where there are none. */
  readonly score: number;
}

/**
 * A character that several steps in a row see is one; two alike have a step of none between them.
 *
 * @param classes of each step the likeliest class
 * @param scores of each step how likely that is
 * @param characters of each class; the first is none
 */
export function decodeSteps(
  classes: ArrayLike<number>,
  scores: ArrayLike<number>,
  characters: readonly string[],
): Reading {
  let text = '';
  let sum = 0;
  let count = 0;
  for (let step = 0; step < classes.length; step++) {
    const seen = classes[step]!;
    if (seen === 0 || seen === classes[step - 1]) continue;
    text += characters[seen] ?? '';
    sum += scores[step]!;
    count++;
  }
  return { text: text.trim(), score: count === 0 ? 0 : sum / count };
}
