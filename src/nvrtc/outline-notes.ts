// What the outline of a source is noted in, and the loops and marks of its phases.

/** A source that is not understood: any name may be a kernel. */
export interface Unread {
  readonly unread: true;
}

/**
 * What is found is noted in one text, since a step that changes an object of types costs ten times
 * as much. Each entry begins with a character that no source has:
 *
 * | entry | |
 * |---|---|
 * | `(name(list` and {@link End} | a kernel |
 * | `(name` and {@link End} | a kernel whose list is not understood |
 * | `name=type;` `name{body}` `name?` | a type: an alias, a structure, one that is not read |
 * | `#name ` | a macro |
 * | `!open` | there may be more kernels |
 * | `!doubt` | there may be other types of any name |
 *
 * Before the first entry are the blocks around the current place, the innermost first: C in extern
 * "C" { }, N in a namespace, # in a conditional directive.
 */
export type Notes = string;
/** Begins an entry. */
export type Entry = '\u0004';
/** Ends a parameter list. */
export type End = '\u0005';

type Fifty = '..................................................';
/** Steps of a loop between two pauses. A step is up to five calls. */
export type Full = `${Fifty}${Fifty}${Fifty}`;
/** Pauses of a phase, after which the source is left unread. */
export type Longest = `${Fifty}${Fifty}${Fifty}${Fifty}${Fifty}`;

export interface Paused<Kind extends string, Rest, Done, State = unknown> {
  readonly paused: Kind;
  readonly rest: Rest;
  readonly done: Done;
  readonly state: State;
}

// Marks of directives in the text: #if, #else or #elif, #endif. One character begins them all: a
// union of templates costs an instantiation for each of its members wherever it is looked at.
export type Sign = '\u0001';
export type If = `${Sign}i`;
export type Else = `${Sign}e`;
export type Endif = `${Sign}n`;
export type WithMark = `${string}${Sign}${string}`;
export type Reserved = WithMark | `${string}${Entry | End | Next}${string}`;

/** Between pieces of a text that are looked at together. */
export type Next = '\u0006';
