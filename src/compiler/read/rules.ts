/** All rules of the language: reading a kernel starts from them. */
import { callDevice } from './device-functions.js';
import { expressionRules } from './expressions.js';
import type { Rules } from './pass.js';
import { statementRules } from './statements.js';

export const rules: Rules = {
  expressions: expressionRules,
  statements: statementRules,
  call: callDevice,
};
