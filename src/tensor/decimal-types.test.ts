import { expectTypeOf, test } from 'vitest';

import type { Add, Divide, IsNatural, Least, Multiply, Subtract } from './decimal-types.js';

test('sums', () => {
  expectTypeOf<Add<2, 3>>().toEqualTypeOf<5>();
  expectTypeOf<Add<999, 1>>().toEqualTypeOf<1000>();
  expectTypeOf<Add<7, 12345678>>().toEqualTypeOf<12345685>();
  expectTypeOf<Add<99999, 999>>().toEqualTypeOf<100998>();
  expectTypeOf<Add<0, 4>>().toEqualTypeOf<4>();
  expectTypeOf<Add<number, 4>>().toEqualTypeOf<number>();
});

test('differences end at 0', () => {
  expectTypeOf<Subtract<1000, 1>>().toEqualTypeOf<999>();
  expectTypeOf<Subtract<1000, 1000>>().toEqualTypeOf<0>();
  expectTypeOf<Subtract<5, 7>>().toEqualTypeOf<0>();
  expectTypeOf<Subtract<5, 1234>>().toEqualTypeOf<0>();
  expectTypeOf<Subtract<12345, 6789>>().toEqualTypeOf<5556>();
  expectTypeOf<Subtract<12345, number>>().toEqualTypeOf<number>();
});

test('products', () => {
  expectTypeOf<Multiply<1024, 768>>().toEqualTypeOf<786432>();
  expectTypeOf<Multiply<99999, 99999>>().toEqualTypeOf<9999800001>();
  expectTypeOf<Multiply<7, 8>>().toEqualTypeOf<56>();
  expectTypeOf<Multiply<100, 30>>().toEqualTypeOf<3000>();
  expectTypeOf<Multiply<0, 30>>().toEqualTypeOf<0>();
  expectTypeOf<Multiply<1, 30>>().toEqualTypeOf<30>();
  expectTypeOf<Multiply<94906265, 94906265>>().toEqualTypeOf<9007199136250225>();
  expectTypeOf<Multiply<3, number>>().toEqualTypeOf<number>();
  expectTypeOf<Multiply<-3, 5>>().toEqualTypeOf<number>();
});

test('quotients and rests', () => {
  expectTypeOf<Divide<786432, 1024>>().toEqualTypeOf<[768, 0]>();
  expectTypeOf<Divide<7, 2>>().toEqualTypeOf<[3, 1]>();
  expectTypeOf<Divide<1000, 999>>().toEqualTypeOf<[1, 1]>();
  expectTypeOf<Divide<6, 7>>().toEqualTypeOf<[0, 6]>();
  expectTypeOf<Divide<0, 7>>().toEqualTypeOf<[0, 0]>();
  expectTypeOf<Divide<90000001, 30>>().toEqualTypeOf<[3000000, 1]>();
  expectTypeOf<Divide<5, 0>>().toEqualTypeOf<[never, never]>();
  expectTypeOf<Divide<5, number>>().toEqualTypeOf<[number, number]>();
});

test('the lesser of two', () => {
  expectTypeOf<Least<3, 20>>().toEqualTypeOf<3>();
  expectTypeOf<Least<20, 3>>().toEqualTypeOf<3>();
  expectTypeOf<Least<20, 20>>().toEqualTypeOf<20>();
  expectTypeOf<Least<number, 3>>().toEqualTypeOf<number>();
});

test('what is a whole number written out', () => {
  expectTypeOf<[IsNatural<0>, IsNatural<4096>]>().toEqualTypeOf<[true, true]>();
  expectTypeOf<[IsNatural<-1>, IsNatural<1.5>, IsNatural<1e21>, IsNatural<number>]>().toEqualTypeOf<
    [false, false, false, false]
  >();
});
