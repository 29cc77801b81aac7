/**
 * Makes schemas: the words of TypeBox that we use, with its types.
 *
 * TypeBox itself is hundreds of files, which every process and thread that knows a schema would load. What they make here
 * is plain JSON Schema, so a few lines do the same.
 */
import type { Type as TypeBox } from 'typebox'

type Word =
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Unknown'
  | 'Unsafe'

type Schema = Readonly<Record<string | symbol, unknown>>

/** Marks a schema whose field may be left out; a symbol, since JSON Schema says so at the object. */
const OPTIONAL = Symbol('optional')

/** How TypeBox writes that a map has any keys. */
const ANY_KEY = '^.*$'

const words: Readonly<Record<Word, (...given: never[]) => Schema>> = {
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Boolean: (options?: Schema) => ({ type: 'boolean', ...options }),
  Enum: (values: readonly unknown[], options?: Schema) => ({ enum: values, ...options }),
  Integer: (options?: Schema) => ({ type: 'integer', ...options }),
  Null: (options?: Schema) => ({ type: 'null', ...options }),
  Number: (options?: Schema) => ({ type: 'number', ...options }),
  Object(properties: Readonly<Record<string, Schema>>, options?: Schema) {
    const required = Object.keys(properties).filter((name) => !Object.hasOwn(properties[name] ?? {}, OPTIONAL))
    return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
  },
  Optional: (schema: Schema) => ({ ...schema, [OPTIONAL]: true }),
  Record: (_key: Schema, value: Schema, options?: Schema) => ({
    type: 'object',
    patternProperties: { [ANY_KEY]: value },
    ...options,
  }),
  String: (options?: Schema) => ({ type: 'string', ...options }),
  Unknown: (options?: Schema) => ({ ...options }),
  Unsafe: (schema: Schema) => ({ ...schema }),
}

/** What TypeScript knows of a schema beyond JSON Schema is in its type alone, so a cast gives it. */
export const Type = words as unknown as Pick<typeof TypeBox, Word>
