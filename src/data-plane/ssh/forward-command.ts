/** Reads the command of a client: the kind of its tunnels, and their flags. */
import { nearest } from '../../lib/text/nearest.ts'
import { type DescribedTunnel, readDescription, readKind } from '../../link/options/described-tunnel.ts'
import type { TunnelKind } from '../../link/options/endpoint-options.ts'
import { isContent } from '../../link/options/file-values.ts'
import { OptionReader, type Problem } from '../../link/options/option-reader.ts'
import { flagFor, flagsOf, flagValue, isRepeatable, setFlag } from '../../link/options/take-flags.ts'
import { refusals } from '../../model/agent-errors.ts'
import type { BindRefusal } from '../tunnel/interfaces.ts'

export interface SshTunnelCommand extends DescribedTunnel {
  /** The flag that names the address. */
  readonly namedBy: string | undefined
  /** Whether a flag chooses between http and https. */
  readonly isSchemeGiven: boolean
  /** Given by the user, shown in the API. */
  readonly name: string
  readonly description: string
}

const kinds: readonly TunnelKind[] = ['http', 'tls', 'tcp', 'labeled']

/** Options that name the address. */
const nameKeys = ['domain', 'hostname', 'subdomain', 'remote_addr', 'url'] as const

/** The most words of one command. */
const MAX_WORDS = 500

/** `help`: asks for the usage of one kind, or of all. */
export function readCommand(text: string): SshTunnelCommand | BindRefusal | { readonly help: TunnelKind | undefined } {
  const words = splitWords(text)
  if (!words) return refusals.badFlag('a quote is not closed')
  if (words.length > MAX_WORDS) return refusals.badFlag(`it has more than ${MAX_WORDS} words`)
  const [first, ...rest] = words
  if (first === undefined) return refusals.noCommand()
  if (first === 'help' || isHelp(first)) return { help: undefined }
  const kind = kinds.find((each) => each === first)
  if (!kind) return first.startsWith('-') ? refusals.noCommand() : refusals.unknownCommand(first)
  if (rest.some(isHelp)) return { help: kind }
  const tunnel = readFlags(kind, rest)
  return 'ngrok' in tunnel ? tunnel : describe(kind, tunnel.values)
}

/** The flags as a tunnel in the spelling of `postern-agent.yml`. */
function readFlags(
  kind: TunnelKind,
  words: readonly string[],
): BindRefusal | { readonly values: Readonly<Record<string, unknown>> } {
  const known = flagsOf('gateway', kind)
  const values: Record<string, unknown> = {}
  const seen = new Set<string>()
  const queue = [...words]
  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    const [, name, given] = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word) ?? []
    // The port of the service, which the agent's command needs. The gateway ignores it, since the forward has the port.
    if (name === undefined && /^\d{1,5}$/.test(word)) continue
    if (name === undefined) return refusals.badFlag(`it has the word \`${word.slice(0, 100)}\` instead of a flag`)
    const flag = known.find((each) => each.name === name)
    if (!flag) return unknownFlag(name, kind)
    // If a guard were given twice, nobody would know which one applies.
    if (seen.has(name) && !isRepeatable(flag, 'gateway')) return refusals.badFlag(`--${name} is given twice`)
    seen.add(name)
    const value = given ?? (flag.takes === undefined ? 'true' : queue.shift())
    if (value === undefined) return refusals.badFlag(`--${name} needs a value: --${name} <${flag.takes}>`)
    if (flag.takes === undefined && value !== 'true' && value !== 'false') {
      return refusals.badFlag(`--${name} takes no value`)
    }
    setFlag(values, flag, flagValue(flag, value))
  }
  return { values }
}

function describe(command: TunnelKind, values: Readonly<Record<string, unknown>>): SshTunnelCommand | BindRefusal {
  if (command === 'labeled' && values.labels === undefined) {
    return refusals.badFlag('labeled needs at least one --label name=value')
  }
  const problems: Problem[] = []
  // With labels the edge decides which protocol visitors use.
  const reader = new OptionReader(values.labels === undefined ? { proto: command, ...values } : values, problems)
  const described = readDescription(reader, readKind(reader), { readText: contentAlone, ownHost: undefined })
  const isSchemeGiven = reader.has('schemes')
  const name = reader.text('name') ?? ''
  const description = reader.text('description') ?? ''
  reader.finish()
  if (problems.length > 0) return refusals.badFlag(problems.map(faultOf).join('; '))
  const nameKey = nameKeys.find((key) => reader.has(key))
  return { ...described, namedBy: nameKey && flagFor([nameKey], 'gateway'), isSchemeGiven, name, description }
}

/** Accepts content only: a file name would mean a file on the client's disk. */
function contentAlone(text: string): string {
  if (isContent(text)) return text
  throw new Error('must be the content itself, in quotes: this server cannot read your files')
}

function faultOf({ path, fault }: Problem): string {
  return `${flagFor(path, 'gateway') ?? path.join('.')} ${fault}`
}

function unknownFlag(name: string, kind: TunnelKind): BindRefusal {
  const otherKinds = kinds.filter((each) => flagsOf('gateway', each).some((flag) => flag.name === name))
  if (otherKinds.length > 0) {
    return refusals.unsupportedFlag(`--${name}`, `is for ${otherKinds.join(' and ')}, not for ${kind}`)
  }
  const why = reasons.find(([names]) => names.test(name))?.[1]
  if (why !== undefined) return refusals.unsupportedFlag(`--${name}`, why)
  const offered = flagsOf('gateway', kind)
  const guess = nearest(
    name,
    offered.map((flag) => flag.name),
  )
  const hint = guess === undefined ? `see ${kind} --help` : `did you mean --${guess}?`
  return refusals.unsupportedFlag(`--${name}`, `is not a flag of ${kind}; ${hint}`)
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h' || word === '-help'
}

/** Flags of the agent that do not work over SSH, with what to do instead. */
const reasons: readonly (readonly [names: RegExp, why: string])[] = [
  [
    /^traffic-policy-file$/,
    'names a file, and this server cannot read your files; give the policy itself with --traffic-policy',
  ],
  [/^traffic-policy-url$/, 'is not supported; give the policy itself with --traffic-policy'],
  [/^upstream-/, 'is for services with TLS, and ssh connects to yours in plain TCP; use our agent'],
  [/^pooling/, 'is not supported over SSH; use our agent, or the command `labeled` and a tunnel group'],
  [/^inspect$/, 'is for the agent; here `ssh -t` shows requests'],
  [/^authtoken$/, 'is for the agent; here your SSH key identifies you'],
  [/^server$/, 'is for the agent; here the server is the one that ssh connects to'],
  [/^ca$/, 'is for the agent; here ssh checks the host key'],
  [/^config$/, 'is for the agent; here use flags'],
  [/^log(-|$)/, 'is for the agent; here `ssh` shows lines, and `ssh -t` a screen'],
]

/**
 * Splits a command into words as a shell does: quotes keep spaces, a backslash keeps the next character. Undefined when a
 * quote is not closed.
 */
export function splitWords(text: string): string[] | undefined {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    if (quote === "'" ? char !== "'" : quote === '"' && char !== '"') {
      const isEscape = quote === '"' && char === '\\' && /["\\]/.test(text.charAt(at + 1))
      word += isEscape ? text.charAt(++at) : char
    } else if (quote !== '') quote = ''
    else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + (char === '\\' ? text.charAt(++at) : char)
  }
  if (quote !== '') return undefined
  return word === undefined ? words : [...words, word]
}
