/** Reads and checks the flags that several benches share. */
import { parseArgs } from 'node:util'

export class FlagFault extends Error {}

/** Whether an error only means that a flag was mistyped. */
export function isFlagFault(error: unknown): error is Error {
  if (error instanceof FlagFault) return true
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
}

/** The message, without Node's advice on arguments that begin with a dash. */
export function faultLine({ message }: Error): string {
  return message.replace(/\. To specify a positional argument.*/s, '')
}

/** Parses a whole number; throws a `FlagFault`. */
export function count(flag: string, text: string, least: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < least)
    throw new FlagFault(`--${flag} must be a whole number, ${least} or more`)
  return value
}

/** The rows of `--only`; null means all. Throws when there is no such row. */
export function onlyRows(only: string | undefined, names: readonly string[]): readonly string[] | null {
  const chosen = only?.split(',') ?? null
  const unknown = chosen?.filter((name) => !names.includes(name)) ?? []
  if (unknown.length > 0) throw new FlagFault(`--only: unknown ${unknown.join(', ')}; choose from ${names.join(', ')}`)
  return chosen
}

/** A flag that takes a whole number: its default and its minimum. */
export type CountFlag = readonly [byDefault: number, least: number]

/** Reads flags that take whole numbers, `--only`, `--node-options` and, with `hasOut`, `--out`; throws an `Error`. */
export function readFlags<Name extends string>(
  args: readonly string[],
  counts: Readonly<Record<Name, CountFlag>>,
  { rowNames, hasOut = false }: { readonly rowNames: readonly string[]; readonly hasOut?: boolean },
) {
  const names = Object.keys(counts) as Name[] // it has no other keys
  const all = [...names, 'only', 'node-options', ...(hasOut ? ['out'] : [])]
  const options = Object.fromEntries(all.map((name) => [name, { type: 'string' } as const]))
  const { values } = parseArgs({ args: [...args], options })
  const read = names.map((name) => {
    const [byDefault, least] = counts[name]
    return [name, count(name, values[name] ?? String(byDefault), least)]
  })
  return {
    counts: Object.fromEntries(read) as Readonly<Record<Name, number>>,
    only: onlyRows(values.only, rowNames),
    out: values.out ?? null,
    nodeOptions: values['node-options'] ?? '',
  }
}
