import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

import { fieldsFromTheStart } from './scripts/fields-rule.mjs';

/** Tables: a row for one thing, however many there are. */
const TABLES = ['src/driver/cpu/calls/*.ts', 'src/driver/libcuda/*calls.ts'];

/** Kernels, whose text is that of one function. */
const KERNELS = [
  'src/images/letterboxing-pixels.ts',
  'src/images/resize-kernels.ts',
  'src/library/attention-backward-rows.ts',
  'src/library/attention-rows.ts',
  'src/library/convolution-kernels.ts',
  'src/library/halved-attention-backward.ts',
  'src/library/product.ts',
  'src/library/tensor-core-product.ts',
  'src/library/warp-group-attention-backward.ts',
  'src/library/warp-group-attention.ts',
  'src/library/warp-group-convolution.ts',
  'src/library/warp-group-product.ts',
];

export default defineConfig(
  globalIgnores([
    'dist/',
    '.carry/',
    'coverage/',
    'api/',
    'demo/out/',
    'test/packaging/fixture/',
    '**/{boot,crew,thread}-source.ts',
    'src/{kernels/compiler,runtime/thread-source}-digest.ts',
  ]),
  // Prettier leaves comments and texts as long as they are.
  {
    files: ['**/*.{js,mjs,ts}'],
    rules: {
      'max-len': ['error', { code: 100, tabWidth: 1, ignoreUrls: true }],
      'max-lines': ['error', 700],
    },
  },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always'],
      'no-self-compare': 'error',
      'no-var': 'error',
      'prefer-const': ['error', { destructuring: 'all' }],

      // A Pending is thenable so that it can be awaited, and made so that it need not be: it is no
      // promise here.
      '@typescript-eslint/no-floating-promises': ['error', { checkThenables: false }],
      '@typescript-eslint/no-misused-promises': [
        'error',
        { checksVoidReturn: { arguments: false } },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-empty-object-type': [
        'error',
        { allowInterfaces: 'with-single-extends' },
      ],

      // An interface's async method may have nothing to wait for.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['**/*.ts'],
    ignores: ['test/fast-check.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          name: 'fast-check',
          message:
            'Import test/fast-check.js: it scales the runs and says how to repeat a failure.',
        },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['**/*.test.ts', '**/*.test-support.ts', '**/testing/**'],
    plugins: { project: { rules: { 'fields-from-the-start': fieldsFromTheStart } } },
    rules: {
      'project/fields-from-the-start': 'error',
      'max-lines-per-function': ['error', 120],
    },
  },
  {
    files: TABLES,
    rules: { 'max-lines': 'off', 'max-lines-per-function': 'off' },
  },
  { files: KERNELS, rules: { 'max-lines-per-function': 'off' } },
  {
    // What comes out of JSON, a mock or a fabricated module is any, and the assertion that follows
    // is the check.
    files: [
      '**/*.test.ts',
      '**/*.test-support.ts',
      '**/testing/**/*.ts',
      'test/**/*.ts',
      'bench/**/*.ts',
    ],
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // A test may assert more than its types need.
      '@typescript-eslint/no-unnecessary-type-assertion': 'off',
    },
  },
  {
    files: ['**/*.{js,mjs}'],
    extends: [tseslint.configs.recommended],
    rules: { eqeqeq: ['error', 'always'], 'no-var': 'error' },
  },
);
