/** Fields and checks shared by the request forms of several modules. */
import { BadValue } from '../lib/shape/check.ts'
import { Type } from '../lib/shape/type.ts'

/** The largest value of a field that clients hold in 32 bits. */
export const MAX_UINT32 = 2 ** 32 - 1

export const enabled = Type.Boolean({
  default: true,
  description: 'Whether the module is applied to traffic; a disabled module is kept but does nothing.',
})

/** Throws `BadValue` when a list names the same thing twice; entries are compared by their `key`. */
export function refuseRepeats(field: string, values: readonly string[], key = (value: string): string => value): void {
  const seen = new Map<string, number>()
  for (const [i, value] of values.entries()) {
    const first = seen.get(key(value))
    if (first !== undefined) {
      const again = `${field}[${i}]`
      throw new BadValue(again, 'value', `\`${again}\` repeats \`${field}[${first}]\`; name each entry once`)
    }
    seen.set(key(value), i)
  }
}
