/** Makes schemas with the functions of TypeBox that we use, and with its types. */
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

/** Marks a schema whose field may be left out; a symbol, since in JSON Schema the object lists its required fields. */
const OPTIONAL = Symbol('optional')

/** TypeBox's pattern for a map with any keys. */
const ANY_KEY = '^.*$'

/**
 * TypeBox itself has hundreds of files, which every process and thread with a schema would load. Their result here is plain
 * JSON Schema, so a few lines do the same.
 */
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

/** The static types exist only in TypeScript, so a cast can add them. */
export const Type = words as unknown as Pick<typeof TypeBox, Word>
