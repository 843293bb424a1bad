/**
 * The header of a JPEG: its size, coding, colours and orientation. It is read here since memory for
 * the pixels is allocated before they are decoded. See ITU-T T.81, annex B; EXIF 2.3; ICC.1:2010,
 * 7.2 and 9.2.
 */
import { CudaFormatError } from '../../core/index.js';

/** EXIF's number of the orientation; 1: the picture is shown as it is stored. */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

export interface JpegHeader {
  /** Pixels, as stored. A height of 0 means that it follows after the first scan (DNL). */
  readonly width: number;
  readonly height: number;
  readonly components: number;
  /** Bits of a sample. */
  readonly precision: number;
  /**
   * The marker of the frame: 0xc0 baseline, 0xc1 extended, 0xc2 progressive, 0xc3 lossless, …; from
   * 0xc9 on coded arithmetically.
   */
  readonly frame: number;
  /** The colours: of three components by libjpeg's rules, of others by their number. */
  readonly colors: 'grey' | 'ycc' | 'rgb' | 'other';
  readonly orientation: Orientation;
  /** The colour profile: `other` is one that is not named sRGB, or that cannot be read. */
  readonly profile: 'none' | 'srgb' | 'other';
  /** The byte at which the first scan begins. */
  readonly scan: number;
}

const [SOI, EOI, SOS, TEM, RST0, RST7] = [0xd8, 0xd9, 0xda, 0x01, 0xd0, 0xd7];
const [APP0, APP1, APP2, APP14] = [0xe0, 0xe1, 0xe2, 0xee];
/**
 * Segments before the first scan at most: cameras write fewer than a thousand, and a file of 16 MiB
 * can have four million empty ones.
 */
const MOST_SEGMENTS = 10_000;
/** Markers between SOF0 and SOF15 that begin no frame: DHT, JPG, DAC. */
const NO_FRAME: ReadonlySet<number> = new Set([0xc4, 0xc8, 0xcc]);

/** Whether the bytes begin like a JPEG. */
export function isJpeg(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === SOI && bytes[2] === 0xff;
}

/**
 * Reads the header up to the first scan, and checks that there is an end marker.
 *
 * @param name the picture's name, for errors
 * @throws CudaFormatError, with the byte, for bytes that are no JPEG, are cut short, or have a
 *   damaged header
 */
export function readJpegHeader(bytes: Uint8Array, name: string): JpegHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fail = (what: string, at: number): CudaFormatError =>
    new CudaFormatError('image', `${name}: ${what}, at byte ${at}`, at);
  if (!isJpeg(bytes)) throw fail('no JPEG: it does not begin with FF D8 FF', 0);
  let frame:
    | (Pick<JpegHeader, 'width' | 'height' | 'components' | 'precision' | 'frame'> & {
        readonly ids: readonly number[];
      })
    | undefined;
  let orientation: Orientation = 1;
  let profile: JpegHeader['profile'] = 'none';
  let jfif = false;
  let transform: number | undefined;
  let segments = 0;
  for (let at = 2; ;) {
    if (++segments > MOST_SEGMENTS)
      throw fail(`a damaged JPEG: more than ${MOST_SEGMENTS} segments before its first scan`, at);
    if (at >= bytes.length)
      throw fail('a JPEG that is cut short: it ends before its first scan', at);
    if (bytes[at] !== 0xff) throw fail('a damaged JPEG: expected a marker', at);
    while (bytes[at] === 0xff) at++;
    const marker = bytes[at++];
    if (marker === undefined)
      throw fail('a JPEG that is cut short: it ends before its first scan', at);
    if (marker === TEM || (marker >= RST0 && marker <= RST7)) continue;
    if (marker === 0 || marker === SOI || marker === EOI)
      throw fail(
        `a damaged JPEG: marker FF ${marker.toString(16).padStart(2, '0').toUpperCase()} ` +
          'before its first scan',
        at - 1,
      );
    if (at + 2 > bytes.length)
      throw fail('a JPEG that is cut short: it ends before its first scan', at);
    const length = view.getUint16(at);
    if (length < 2) throw fail(`a damaged JPEG: a segment of ${length} bytes`, at);
    const next = at + length;
    if (next > bytes.length)
      throw fail('a JPEG that is cut short: it ends within its header', bytes.length);
    const segment = bytes.subarray(at + 2, next);
    if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAME.has(marker)) {
      if (frame !== undefined) throw fail('a damaged JPEG: a second frame', at - 2);
      const components = segment[5];
      if (components === undefined || components === 0 || segment.length !== 6 + 3 * components)
        throw fail('a damaged JPEG: the header of its frame has another length', at);
      const width = view.getUint16(at + 5);
      if (width === 0) throw fail('a damaged JPEG: it is 0 pixels wide', at + 5);
      frame = {
        frame: marker,
        precision: segment[0]!,
        height: view.getUint16(at + 3),
        width,
        components,
        ids: Array.from({ length: components }, (_, i) => segment[6 + 3 * i]!),
      };
    } else if (marker === APP0) {
      jfif ||= hasText(segment, 'JFIF\0');
    } else if (marker === APP1) {
      // The first one counts, as in libexif.
      if (orientation === 1 && hasText(segment, 'Exif\0\0'))
        orientation = exifOrientation(segment.subarray(6));
    } else if (marker === APP2) {
      if (profile === 'none' && hasText(segment, 'ICC_PROFILE\0'))
        profile = isSrgb(segment.subarray(14)) ? 'srgb' : 'other';
    } else if (marker === APP14) {
      if (hasText(segment, 'Adobe') && segment.length >= 12) transform = segment[11];
    } else if (marker === SOS) {
      if (frame === undefined) throw fail('a damaged JPEG: a scan before its frame', at - 2);
      if (!hasEnd(bytes, next))
        throw fail('a JPEG that is cut short: it has no end marker', bytes.length);
      const { ids, ...rest } = frame;
      return {
        ...rest,
        colors: colorsOf(rest.components, ids, jfif, transform),
        orientation,
        profile,
        scan: next,
      };
    }
    at = next;
  }
}

/**
 * Whether there is an end marker, FF D9. Coded bytes do not have one: an FF in them is followed by
 * 0. The search goes backward, since the marker is at the end, before bytes that programs append.
 */
function hasEnd(bytes: Uint8Array, from: number): boolean {
  for (let at = bytes.lastIndexOf(EOI); at > from; at = bytes.lastIndexOf(EOI, at - 1)) {
    if (bytes[at - 1] === 0xff) return true;
  }
  return false;
}

function hasText(segment: Uint8Array, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (segment[i] !== text.charCodeAt(i)) return false;
  return true;
}

/** Decides as libjpeg does (default_decompress_parms). */
function colorsOf(
  components: number,
  ids: readonly number[],
  jfif: boolean,
  transform: number | undefined,
): JpegHeader['colors'] {
  if (components === 1) return 'grey';
  if (components !== 3) return 'other';
  if (jfif) return 'ycc';
  if (transform !== undefined) return transform === 0 ? 'rgb' : 'ycc';
  return String.fromCharCode(...ids) === 'RGB' ? 'rgb' : 'ycc';
}

/** The orientation in the first image file directory; 1 where it cannot be read. */
function exifOrientation(tiff: Uint8Array): Orientation {
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  if (tiff.length < 8) return 1;
  const little = hasText(tiff, 'II*\0');
  if (!little && !hasText(tiff, 'MM\0*')) return 1;
  const directory = view.getUint32(4, little);
  if (directory + 2 > tiff.length) return 1;
  const entries = view.getUint16(directory, little);
  for (let i = 0, at = directory + 2; i < entries && at + 12 <= tiff.length; i++, at += 12) {
    // Tag 0x0112, one SHORT.
    if (view.getUint16(at, little) !== 0x0112) continue;
    const value =
      view.getUint16(at + 2, little) === 3 && view.getUint32(at + 4, little) === 1
        ? view.getUint16(at + 8, little)
        : 1;
    return value >= 1 && value <= 8 ? (value as Orientation) : 1;
  }
  return 1;
}

/**
 * Whether the description of the profile has the name sRGB, in ASCII or in UTF-16. Of a profile in
 * several parts the first one has it.
 */
function isSrgb(profile: Uint8Array): boolean {
  if (profile.length < 132) return false;
  const view = new DataView(profile.buffer, profile.byteOffset, profile.byteLength);
  const tags = view.getUint32(128);
  for (let i = 0, at = 132; i < tags && at + 12 <= profile.length; i++, at += 12) {
    if (!hasText(profile.subarray(at), 'desc')) continue;
    const [offset, size] = [view.getUint32(at + 4), view.getUint32(at + 8)];
    return String.fromCharCode(
      ...profile.subarray(offset, offset + Math.min(size, 512)).filter((byte) => byte !== 0),
    ).includes('sRGB');
  }
  return false;
}
