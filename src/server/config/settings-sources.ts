/** Collects the text of each setting from flags, environment and file, and refuses names that are not settings. */
import { nearest } from '../../lib/text/nearest.ts'
import { type Given, readConfigFile } from './settings-file.ts'
import { clientVariables, configFlag, envName, fileKey, settings } from './settings-table.ts'

export interface SettingSources {
  /** Flags by name without dashes. */
  readonly flags?: Readonly<Record<string, string | undefined>>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Addresses of listeners that a service manager opened, by setting. */
  readonly handed?: ReadonlyMap<string, string>
  /** A running server must not block: it does not wait for the file, which must be small. */
  readonly isServing?: boolean
}

interface Gathered {
  /** By setting name; only the text that takes precedence. */
  readonly given: ReadonlyMap<string, Given>
  readonly problems: readonly string[]
}

/** What a source says of a setting, or what is wrong with it. */
type Found = readonly [name: string, given: Given] | string

const flagSettings = settings.filter((each) => !each.envOnly)

/** Reads all sources: a flag wins over a variable, a variable over the file, and a handed-in socket over all. */
export function gather({ flags = {}, env, cwd, handed = new Map(), isServing = false }: SettingSources): Gathered {
  const file = readConfigFile({ named: flags[configFlag] ?? unlessEmpty(env[envName(configFlag)]), cwd, isServing })
  const found = [...fromFile(file.entries), ...fromEnv(env), ...fromFlags(flags), ...fromHanded(handed)]
  return {
    given: new Map(found.filter((each) => typeof each !== 'string')),
    problems: [...file.problems, ...found.filter((each) => typeof each === 'string')],
  }
}

function* fromFlags(flags: Readonly<Record<string, string | undefined>>): Generator<Found> {
  const names = flagSettings.map((each) => each.name)
  for (const [name, text] of Object.entries(flags)) {
    if (text === undefined || name === configFlag) continue
    const flag = `--${name}`
    if (names.includes(name)) yield [name, { text, from: flag }]
    else
      yield envOnlyProblem(name, flag) ??
        unknown(
          flag,
          names.map((each) => `--${each}`),
        )
  }
}

function* fromEnv(env: Readonly<Record<string, string | undefined>>): Generator<Found> {
  const byVariable = new Map(settings.map((each) => [envName(each.name), each]))
  const ignored = new Set([...clientVariables, envName(configFlag)])
  for (const [variable, value] of Object.entries(env)) {
    // An empty variable counts as unset: compose files and CI pass on unset variables that way.
    const text = unlessEmpty(value)
    if (!variable.startsWith('POSTERN_') || text === undefined || ignored.has(variable)) continue
    const known = byVariable.get(variable)
    if (known) yield [known.name, { text, from: variable }]
    else if (!isServiceLink(variable, text)) yield unknown(variable, [...byVariable.keys()])
  }
}

function* fromHanded(addresses: ReadonlyMap<string, string>): Generator<Found> {
  for (const [name, text] of addresses) yield [name, { text, from: 'the socket that was passed' }]
}

function* fromFile(entries: ReadonlyMap<string, Given>): Generator<Found> {
  const byKey = new Map(flagSettings.map((each) => [fileKey(each.name), each]))
  for (const [key, entry] of entries) {
    const known = byKey.get(key)
    if (known) yield [known.name, entry]
    else yield envOnlyProblem(key, `${key} (${entry.from})`) ?? unknown(key, [...byKey.keys()], entry.from)
  }
}

function envOnlyProblem(name: string, shown: string): string | undefined {
  const found = settings.find((each) => each.envOnly && fileKey(each.name) === fileKey(name))
  return found && `\`${shown}\` is a secret and is read from the environment only: set ${envName(found.name)}`
}

function unknown(name: string, known: readonly string[], from?: string): string {
  const meant = nearest(name, known)
  const where = from === undefined ? '' : ` (${from})`
  return `\`${name}\`${where} is not a known setting; ${meant ? `did you mean \`${meant}\`?` : 'see `postern serve --help`'}`
}

/** Kubernetes sets variables for every service: one called `postern` gives POSTERN_PORT and others, which are not settings. */
function isServiceLink(variable: string, text: string): boolean {
  if (/_SERVICE_(HOST|PORT(_\w+)?)$/.test(variable)) return true
  return /_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(variable) || /^(tcp|udp|sctp):\/\//.test(text)
}

function unlessEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text
}
