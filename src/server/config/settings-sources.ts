/** Collects the text of each setting from flags, environment and file, and refuses names that are not settings. */
import { nearest } from '../../lib/text/nearest.ts'
import type { Setting } from './setting-kinds.ts'
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

const flagSettings = settings.filter((each) => !each.envOnly)

/** Reads all sources: a flag wins over a variable, a variable over the file, and a handed-in socket over all. */
export function gather({ flags = {}, env, cwd, handed = new Map(), isServing = false }: SettingSources): Gathered {
  const file = readConfigFile({ named: flags[configFlag] ?? unlessEmpty(env[envName(configFlag)]), cwd, isServing })
  const layers = [fromFile(file.entries), fromEnv(env), fromFlags(flags), fromHanded(handed)]
  return {
    given: new Map(layers.flatMap((layer) => [...layer.given])),
    problems: [...file.problems, ...layers.flatMap((layer) => layer.problems)],
  }
}

function fromFlags(flags: Readonly<Record<string, string | undefined>>): Gathered {
  const names = flagSettings.map((each) => each.name)
  const given = new Map<string, Given>()
  const problems: string[] = []
  for (const [name, text] of Object.entries(flags)) {
    if (text === undefined || name === configFlag) continue
    if (names.includes(name)) given.set(name, { text, from: `--${name}` })
    else
      problems.push(
        envOnlyProblem(name, `--${name}`) ??
          unknown(
            `--${name}`,
            names.map((each) => `--${each}`),
          ),
      )
  }
  return { given, problems }
}

function fromEnv(env: Readonly<Record<string, string | undefined>>): Gathered {
  const byVariable = new Map(settings.map((each) => [envName(each.name), each]))
  const ignored = new Set([...clientVariables, envName(configFlag)])
  const given = new Map<string, Given>()
  const problems: string[] = []
  for (const [variable, value] of Object.entries(env)) {
    // An empty variable counts as unset: compose files and CI pass on unset variables that way.
    const text = unlessEmpty(value)
    if (!variable.startsWith('POSTERN_') || text === undefined || ignored.has(variable)) continue
    const known = byVariable.get(variable)
    if (known) given.set(known.name, { text, from: variable })
    else if (!isServiceLink(variable, text)) problems.push(unknown(variable, [...byVariable.keys()]))
  }
  return { given, problems }
}

function fromHanded(addresses: ReadonlyMap<string, string>): Gathered {
  const given = [...addresses].map(([name, text]): [string, Given] => [
    name,
    { text, from: 'the socket that was passed' },
  ])
  return { given: new Map(given), problems: [] }
}

function fromFile(entries: ReadonlyMap<string, Given>): Gathered {
  const byKey = new Map(flagSettings.map((each): [string, Setting<unknown>] => [fileKey(each.name), each]))
  const given = new Map<string, Given>()
  const problems: string[] = []
  for (const [key, entry] of entries) {
    const known = byKey.get(key)
    if (known) given.set(known.name, entry)
    else problems.push(envOnlyProblem(key, `${key} (${entry.from})`) ?? unknown(key, [...byKey.keys()], entry.from))
  }
  return { given, problems }
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
