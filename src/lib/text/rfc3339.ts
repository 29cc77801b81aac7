/** Reads a point in time in RFC 3339 form, and refuses dates that do not exist. */
import { BadInput } from '../shape/bad-input.ts'

const FORM = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

/** In milliseconds since 1970; throws a `BadInput` whose message continues after the name of the field. */
export function readRfc3339(text: string): number {
  const [, date = '', clock = '', fraction = '', zone = ''] = FORM.exec(text) ?? []
  const local = Date.parse(`${date}T${clock}Z`)
  // `Date.parse` reads a day that does not exist, such as 30 February, as a day of the next month.
  if (date === '' || Number.isNaN(local) || new Date(local).toISOString().slice(0, 19) !== `${date}T${clock}`) {
    throw new BadInput('must be a time in RFC 3339 form, such as `2030-01-31T12:00:00Z`')
  }
  const millis = Date.parse(`${date}T${clock}${fraction.slice(0, 4)}${zone.toUpperCase()}`)
  if (Number.isNaN(millis)) throw new BadInput('has an offset that does not exist; write `Z` for UTC')
  return millis
}
