/** Reads message fields as agents send them: names in any case, unknown ones ignored, `null` for absent. */
import { WireError } from '../wire-error.ts'

/** Most entries of a list or map in a message. */
const MAX_ENTRIES = 1000

/** A field of a wrong type is an error that names the field. */
export class MessageFields {
  readonly #at: string
  readonly #values = new Map<string, unknown>()

  constructor(value: Readonly<Record<string, unknown>>, at = '') {
    this.#at = at
    for (const name of Object.keys(value)) {
      const key = name.toLowerCase()
      if (!this.#values.has(key)) this.#values.set(key, value[name])
    }
  }

  /** Runs `read` on the fields of `message`; errors come back as values. */
  static parse<T>(message: Readonly<Record<string, unknown>>, read: (fields: MessageFields) => T): T | WireError {
    try {
      return read(new MessageFields(message))
    } catch (error) {
      if (error instanceof WireError) return error
      throw error
    }
  }

  /** `''` when absent. */
  text(name: string): string {
    return this.optionalText(name) ?? ''
  }

  /** Null when absent, which agents distinguish from `''`. */
  optionalText(name: string): string | null {
    const value = this.#get(name)
    if (value === undefined) return null
    if (typeof value !== 'string') throw this.#wrong(name, 'a string')
    return value
  }

  flag(name: string): boolean {
    return this.optionalFlag(name) ?? false
  }

  optionalFlag(name: string): boolean | null {
    const value = this.#get(name)
    if (value === undefined) return null
    if (typeof value !== 'boolean') throw this.#wrong(name, 'true or false')
    return value
  }

  /** A whole number of zero or more; 0 when absent. */
  count(name: string): number {
    const value = this.#get(name) ?? 0
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
      throw this.#wrong(name, 'a whole number of zero or more')
    }
    return value
  }

  texts(name: string): readonly string[] {
    const value = this.#get(name) ?? []
    if (!Array.isArray(value) || value.length > MAX_ENTRIES || !value.every((each) => typeof each === 'string')) {
      throw this.#wrong(name, `a list of at most ${MAX_ENTRIES} strings`)
    }
    return value
  }

  /** A map of strings, on an object without a prototype. */
  map(name: string): Readonly<Record<string, string>> {
    const entries = Object.entries(this.record(name))
    if (entries.length > MAX_ENTRIES) throw this.#wrong(name, `a map of at most ${MAX_ENTRIES} entries`)
    const map: Record<string, string> = Object.create(null)
    for (const [key, value] of entries) {
      if (typeof value !== 'string') throw this.#wrong(name, 'a map of strings')
      map[key] = value
    }
    return map
  }

  /** An object, unchanged; `{}` when absent. */
  record(name: string): Readonly<Record<string, unknown>> {
    const value = this.#get(name) ?? {}
    if (!isRecord(value)) throw this.#wrong(name, 'an object')
    return value
  }

  /** The fields of a nested object; all absent when it is absent. */
  object(name: string): MessageFields {
    return new MessageFields(this.record(name), `${this.#at}${name}.`)
  }

  #get(name: string): unknown {
    return this.#values.get(name.toLowerCase()) ?? undefined
  }

  #wrong(name: string, wanted: string): WireError {
    return new WireError('message_invalid', 'peer', `\`${this.#at}${name}\` must be ${wanted}`)
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
