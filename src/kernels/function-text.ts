/** The text of a function, as the compiler reads it. */
import { invalid } from '../ground/arguments.js';

/** Gives the text of a function that was written in JavaScript. */
export function textOfFunction(argument: string, given: unknown): string {
  if (typeof given !== 'function') throw invalid(argument, 'a function', given);
  const text = Function.prototype.toString.call(given);
  if (/\{\s*\[native code\]\s*\}\s*$/.test(text))
    throw invalid(
      argument,
      'a function whose text is known',
      given,
      'It is native or bound: pass the function itself, as an arrow function or a function ' +
        'declaration.',
    );
  return text;
}
