/** Reads a point in time as RFC 3339 writes it, and nothing that only looks like one. */
import { BadInput } from '../shape/bad-input.ts'

const FORM = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

/** In milliseconds since 1970; throws a `BadInput` whose message goes on after the name of the field. */
export function readRfc3339(text: string): number {
  const [, date = '', clock = '', fraction = '', zone = ''] = FORM.exec(text) ?? []
  const local = Date.parse(`${date}T${clock}Z`)
  // A day that its month has not, such as 30 February, is read as one of the next.
  if (date === '' || Number.isNaN(local) || new Date(local).toISOString().slice(0, 19) !== `${date}T${clock}`) {
    throw new BadInput('must be a time in RFC 3339 form, such as `2030-01-31T12:00:00Z`')
  }
  const millis = Date.parse(`${date}T${clock}${fraction.slice(0, 4)}${zone.toUpperCase()}`)
  if (Number.isNaN(millis)) throw new BadInput('has an offset that is none; write `Z` for UTC')
  return millis
}
