/** The schema of a field of the API document, as forms use it. */

import { isRecord } from './api-caller.ts'
import { textIn } from './text-in.ts'

type FieldType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object'

export interface FormSchema {
  /** Undefined where any JSON is allowed. */
  readonly type: FieldType | undefined
  readonly description: string
  readonly default: unknown
  /** The words that are allowed; undefined for any. */
  readonly words: readonly (string | number)[] | undefined
  /** The fields of an object, in their order; undefined for a map and for what is no object. */
  readonly fields: ReadonlyMap<string, FormSchema> | undefined
  readonly required: ReadonlySet<string>
  /** The schema of the entries of an array or a map. */
  readonly entries: FormSchema | undefined
  readonly maxLength: number | undefined
  /** Whether only admins may send it. */
  readonly isForAdmins: boolean
}

const types: readonly string[] = ['string', 'integer', 'number', 'boolean', 'array', 'object'] satisfies FieldType[]

/** Reads a schema; `null` beside another type only says that a field may be left out, which a form does anyway. */
export function formSchema(schema: unknown): FormSchema {
  const node = isRecord(schema) ? schema : {}
  const type = [node.type].flat().find((each): each is FieldType => types.includes(textIn(each)))
  const words = Array.isArray(node.enum) ? node.enum.filter(isWord) : undefined
  const entries = isRecord(node.items) ? node.items : node.additionalProperties
  return {
    type,
    description: typeof node.description === 'string' ? node.description : '',
    default: node.default,
    words: words && words.length > 0 ? words : undefined,
    fields: isRecord(node.properties)
      ? new Map(Object.entries(node.properties).map(([name, each]) => [name, formSchema(each)]))
      : undefined,
    required: new Set(Array.isArray(node.required) ? node.required.map(String) : []),
    entries: isRecord(entries) || entries === true ? formSchema(entries) : undefined,
    maxLength: typeof node.maxLength === 'number' ? node.maxLength : undefined,
    isForAdmins: node['x-for-admins'] === true,
  }
}

function isWord(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number'
}
