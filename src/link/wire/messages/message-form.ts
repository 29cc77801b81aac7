/** Forms of messages: each lists its fields once, for the end that builds such messages and for the end that reads them. */
import { Secret } from '../../../lib/secrets/secret.ts'
import type { Message } from '../agent-rpc.ts'
import type { WireError } from '../wire-error.ts'
import { MessageFields } from './message-fields.ts'

interface Field<T> {
  read(this: void, fields: MessageFields): T
  /** Adds the field to a message; `values` are those of all fields. */
  write(this: void, message: Record<string, unknown>, value: T, values: Readonly<Record<string, unknown>>): void
}

/** Fields by their names in our code. Anything else is a constant that is always sent under that name, and never read. */
type Fields = Readonly<Record<string, Field<unknown> | string | null | readonly []>>

type Value<Of> = Of extends Field<infer T> ? T : never

type OptionalKey<Of> = { [Key in keyof Of]: undefined extends Value<Of[Key]> ? Key : never }[keyof Of]

/** What a form reads, and is built from; a field that may be undefined may be left out. */
type Values<Of> = {
  readonly [Key in keyof Of as Of[Key] extends Field<unknown> ? Exclude<Key, OptionalKey<Of>> : never]: Value<Of[Key]>
} & { readonly [Key in OptionalKey<Of>]?: Value<Of[Key]> }

/** What a form reads. */
export type MessageOf<Form extends { parse(message: Message): unknown }> = Exclude<ReturnType<Form['parse']>, WireError>

/** A message with these fields and, if `extra` is given, with others in an object `Extra`. */
export function messageForm<Top extends Fields, Extra extends Fields = Record<never, never>>(top: Top, extra?: Extra) {
  const topFields = Object.entries(top)
  const extraFields = extra && Object.entries(extra)
  const read = (fields: MessageFields): Values<Top & Extra> => {
    const values = {}
    readInto(values, topFields, fields)
    if (extraFields) readInto(values, extraFields, fields.object('Extra'))
    return values as Values<Top & Extra> // each field has its type
  }
  return {
    parse: (message: Message): Values<Top & Extra> | WireError => MessageFields.parse(message, read),
    /** `error` is `''` when the call succeeded. */
    parseAnswer: (message: Message): { error: string; answer: Values<Top & Extra> } | WireError =>
      MessageFields.parse(message, (fields) => ({ error: fields.text('Error'), answer: read(fields) })),
    build: (values: Values<Top & Extra>): Message => {
      const message: Record<string, unknown> = {}
      write(message, topFields, values)
      if (extraFields) message.Extra = write({}, extraFields, values)
      return message
    },
  }
}

type Entries = readonly (readonly [key: string, field: Fields[string]])[]

function readInto(values: Record<string, unknown>, entries: Entries, fields: MessageFields): void {
  for (const [key, field] of entries) if (isField(field)) values[key] = field.read(fields)
}

function write(message: Record<string, unknown>, entries: Entries, values: Readonly<Record<string, unknown>>): Message {
  for (const [key, field] of entries) {
    if (isField(field)) field.write(message, values[key], values)
    else message[key] = field
  }
  return message
}

function isField(field: Fields[string]): field is Field<unknown> {
  return typeof field === 'object' && field !== null && 'read' in field
}

/** The field `name` of a message. */
export function field<T>(
  name: string,
  read: (fields: MessageFields) => T,
  written: (value: T) => unknown = (value) => value,
): Field<T> {
  return {
    read,
    write(message, value) {
      message[name] = written(value)
    },
  }
}

/** Several fields of a message that are one value here. */
export function joined<T>(read: (fields: MessageFields) => T, write: (value: T) => object | undefined): Field<T> {
  return { read, write: (message, value) => void Object.assign(message, write(value)) }
}

/** The same field, which is left out while the one with this name in our code is empty. */
export function sentIf<T>(key: string, { read, write }: Field<T>): Field<T> {
  return {
    read,
    write(message, value, values) {
      if (values[key]) write(message, value, values)
    },
  }
}

export const text = (name: string) => field(name, (fields) => fields.text(name))
export const texts = (name: string) => field(name, (fields) => fields.texts(name))
export const optionalText = (name: string) => field(name, (fields) => fields.optionalText(name))
export const flag = (name: string) => field(name, (fields) => fields.flag(name))
export const optionalFlag = (name: string) => field(name, (fields) => fields.optionalFlag(name))
export const count = (name: string) => field(name, (fields) => fields.count(name))
export const record = (name: string) => field(name, (fields) => fields.record(name))
export const map = (name: string) => field(name, (fields) => fields.map(name))

export function secret(name: string): Field<Secret> {
  return field(
    name,
    (fields) => new Secret(fields.text(name)),
    (value) => value.reveal(),
  )
}
