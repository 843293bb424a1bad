/**
 * Whether the models that read text are installed: tests that need them are left out loudly where
 * they are not, as on GPU hosts.
 */
import { OcrModelsAbsent, findOcrModels } from './ocr-models.js';

/** Why the tests are left out; undefined where they run. */
export const whyNoOcr: string | undefined = await findOcrModels().then(
  () => undefined,
  (error: unknown) => {
    if (error instanceof OcrModelsAbsent) return error.message;
    throw error;
  },
);
