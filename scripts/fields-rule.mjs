/**
 * A lint rule: a class sets all of its fields while it is made. A field that comes later gives the
 * object another shape: code that V8 has compiled for the one is not valid for the other, and the
 * objects of a class have as many shapes as there are orders in which their fields come (an
 * engine's run that is made and queued took 2.4 times as long).
 *
 * Fields are assigned in constructors here (`useDefineForClassFields: false`), so one without a
 * value is not there until then.
 *
 * @type {import('eslint').Rule.RuleModule}
 */
export const fieldsFromTheStart = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      later:
        "'{{name}}' is no field of a new object: give it a value here (= undefined), or in " +
        'the constructor.',
    },
  },
  create(context) {
    return {
      ClassBody({ body }) {
        const set = new Set(
          body
            .filter(({ kind }) => kind === 'constructor')
            .flatMap(({ value }) => value.body?.body ?? [])
            .flatMap(fieldsSetBy),
        );
        for (const member of body) {
          if (
            member.type !== 'PropertyDefinition' ||
            member.static ||
            member.declare ||
            member.value !== null
          )
            continue;
          const { name } = member.key;
          if (mayBeUndefined(member) && !set.has(name))
            context.report({ node: member, messageId: 'later', data: { name } });
        }
      },
    };
  },
};

function mayBeUndefined({ optional, typeAnnotation }) {
  const type = typeAnnotation?.typeAnnotation;
  return (
    optional ||
    (type?.type === 'TSUnionType' && type.types.some(({ type }) => type === 'TSUndefinedKeyword'))
  );
}

/**
 * Of a statement of a constructor: `this.a = …;`, `this.a = this.b = …;` and `[this.a, this.b] =
 * …;`.
 */
function fieldsSetBy({ expression }) {
  const fields = [];
  for (let each = expression; each?.type === 'AssignmentExpression'; each = each.right) {
    const targets = each.left.type === 'ArrayPattern' ? each.left.elements : [each.left];
    fields.push(
      ...targets
        .filter((target) => target?.object?.type === 'ThisExpression')
        .map(({ property }) => property.name),
    );
  }
  return fields;
}
