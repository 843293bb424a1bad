/** Where a tag goes beside what it names, so that it covers as little as can be of the rest. */

/** In pixels of a picture. */
export interface Area {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

function overlap(a: Area, b: Area): number {
  const across = Math.min(a.left + a.width, b.left + b.width) - Math.max(a.left, b.left);
  const down = Math.min(a.top + a.height, b.top + b.height) - Math.max(a.top, b.top);
  return Math.max(0, across) * Math.max(0, down);
}

/**
 * Above what it names, below it, to the right or to the left of it, whichever covers least of
 * `taken`; the first of those where several do. It is moved to stay on the picture.
 *
 * @param named what it names; it covers that only where it does not fit beside it
 * @param taken what else is on the picture, tags included
 */
export function placeTag(
  tag: Pick<Area, 'width' | 'height'>,
  named: Area,
  taken: readonly Area[],
  picture: Pick<Area, 'width' | 'height'>,
): Area {
  const middle = named.top + (named.height - tag.height) / 2;
  const places = [
    [named.left, named.top - tag.height],
    [named.left, named.top + named.height],
    [named.left + named.width, middle],
    [named.left - tag.width, middle],
  ] as const;
  const areas = places.map(([left, top]): Area => ({
    ...tag,
    left: Math.round(Math.max(0, Math.min(left, picture.width - tag.width))),
    top: Math.round(Math.max(0, Math.min(top, picture.height - tag.height))),
  }));
  const covered = areas.map((area) =>
    [named, ...taken].reduce((sum, other) => sum + overlap(area, other), 0),
  );
  return areas[covered.indexOf(Math.min(...covered))]!;
}
