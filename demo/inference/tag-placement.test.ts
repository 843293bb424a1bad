import { expect, test } from 'vitest';

import { placeTag } from './tag-placement.js';

const picture = { width: 200, height: 100 };
const tag = { width: 30, height: 10 };
const named = { left: 80, top: 40, width: 40, height: 20 };

test('a tag is above its box', () => {
  expect(placeTag(tag, named, [], picture)).toEqual({ ...tag, left: 80, top: 30 });
});

test('where something is above it goes below, then to the right, then to the left', () => {
  const above = { left: 80, top: 10, width: 40, height: 25 };
  const below = { left: 80, top: 65, width: 40, height: 25 };
  const right = { left: 125, top: 0, width: 40, height: 100 };
  expect(placeTag(tag, named, [above], picture)).toMatchObject({ left: 80, top: 60 });
  expect(placeTag(tag, named, [above, below], picture)).toMatchObject({ left: 120, top: 45 });
  expect(placeTag(tag, named, [above, below, right], picture)).toMatchObject({ left: 50, top: 45 });
});

test('a tag stays on the picture, and does not cover its box where there is room', () => {
  expect(placeTag(tag, { left: 190, top: 0, width: 10, height: 20 }, [], picture)).toMatchObject({
    left: 170,
    top: 20,
  });
  expect(placeTag(tag, { left: 0, top: 0, width: 200, height: 100 }, [], picture)).toEqual({
    ...tag,
    left: 0,
    top: 0,
  });
});
