/** Chooses the coding that a visitor prefers, by `Accept-Encoding` (RFC 9110 §12.5.3). */

/** How many entries of the header are read; browsers send four. */
const MAX_PARTS = 32

/** The entry of `offered` with the highest weight, the first on a tie; undefined when the visitor accepts none. */
export function chooseCoding<T extends string>(header: string, offered: readonly T[]): T | undefined {
  const weights = new Map<string, number>()
  for (const part of header.toLowerCase().split(',', MAX_PARTS)) {
    const [name = '', ...parameters] = part.split(';').map((each) => each.trim())
    const weight = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.exec(parameters[0] ?? 'q=1')?.[1]
    // An invalid weight counts as 0.
    if (name !== '' && !weights.has(name)) weights.set(name, Number(weight ?? 0))
  }
  let best: T | undefined
  let highest = 0
  for (const coding of offered) {
    const weight = weights.get(coding) ?? weights.get(`x-${coding}`) ?? weights.get('*') ?? 0
    if (weight <= highest) continue
    best = coding
    highest = weight
  }
  return best
}
