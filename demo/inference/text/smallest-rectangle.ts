/** Turned rectangles, and the smallest one around a set of points. */
import type { Point } from '../photograph.js';

export interface TurnedRectangle {
  /** Its middle. */
  readonly x: number;
  readonly y: number;
  /** Along `angle`. */
  readonly width: number;
  /** Across it. */
  readonly height: number;
  /** Where its width points to: radians clockwise from the x axis, as y goes down. */
  readonly angle: number;
}

/** Clockwise, from the corner before which both width and height begin. */
export function cornersOf({
  x,
  y,
  width,
  height,
  angle,
}: TurnedRectangle): [Point, Point, Point, Point] {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const corner = (across: number, down: number): Point => ({
    x: x + across * width * cos - down * height * sin,
    y: y + across * width * sin + down * height * cos,
  });
  return [corner(-0.5, -0.5), corner(0.5, -0.5), corner(0.5, 0.5), corner(-0.5, 0.5)];
}

/**
 * The convex hull, in order around it: Andrew's monotone chain (1979). Points on its edges are left
 * out, and so are those that come twice.
 */
export function convexHull(points: readonly Point[]): Point[] {
  const sorted = [...points]
    .sort((a, b) => a.x - b.x || a.y - b.y)
    .filter(({ x, y }, i, all) => x !== all[i - 1]?.x || y !== all[i - 1]?.y);
  if (sorted.length === 1) return sorted;
  const half = (ordered: readonly Point[]): Point[] => {
    const chain: Point[] = [];
    for (const point of ordered) {
      while (chain.length >= 2 && turn(chain.at(-2)!, chain.at(-1)!, point) <= 0) chain.pop();
      chain.push(point);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

/** Above 0 where the way from a over b to c turns clockwise, as y goes down. */
function turn(a: Point, b: Point, c: Point): number {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

/**
 * The rectangle of the smallest area that holds the points, turned by more than -45° and at most
 * 45°. One of its sides lies along the points' convex hull (Freeman and Shapira, 1975), so every
 * edge of that is tried.
 *
 * @param points at least one
 */
export function smallestRectangle(points: readonly Point[]): TurnedRectangle {
  const hull = convexHull(points);
  let smallest: TurnedRectangle | undefined;
  for (const [i, from] of hull.entries()) {
    const to = hull[(i + 1) % hull.length]!;
    const angle = withinEighth(Math.atan2(to.y - from.y, to.x - from.x));
    const rectangle = rectangleAlong(hull, angle);
    if (
      smallest === undefined ||
      rectangle.width * rectangle.height < smallest.width * smallest.height
    )
      smallest = rectangle;
  }
  return smallest!;
}

/** The same direction but for quarter turns, above -45° and up to 45°. */
function withinEighth(angle: number): number {
  const quarter = Math.PI / 2;
  return angle - quarter * Math.ceil(angle / quarter - 0.5);
}

function rectangleAlong(points: readonly Point[], angle: number): TurnedRectangle {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const along = points.map(({ x, y }) => x * cos + y * sin);
  const across = points.map(({ x, y }) => y * cos - x * sin);
  const [left, right, top, bottom] = [
    Math.min(...along),
    Math.max(...along),
    Math.min(...across),
    Math.max(...across),
  ];
  const [u, v] = [(left + right) / 2, (top + bottom) / 2];
  return {
    x: u * cos - v * sin,
    y: u * sin + v * cos,
    width: right - left,
    height: bottom - top,
    angle,
  };
}
