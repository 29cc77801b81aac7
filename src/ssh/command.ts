/** Reads the command of a client: what its tunnels are, and the flags that say more of them. */
import { nearest } from '../lib/nearest.ts'
import type { BindRefusal } from '../tunnel/ports.ts'
import { type Flag, flags, type TunnelKind, unsupported, type Wishes } from './flags.ts'
import { sshRefusals } from './refusals.ts'
import { splitWords } from './split-words.ts'

export interface TunnelCommand extends Wishes {
  readonly kind: TunnelKind
}

const kinds: readonly TunnelKind[] = ['http', 'tls', 'tcp', 'labeled']

/** Words of one command. */
const MAX_WORDS = 500

/** `help` asks for how to use the kind, or all. */
export function readCommand(text: string): TunnelCommand | BindRefusal | { readonly help: TunnelKind | undefined } {
  const words = splitWords(text)
  if (!words) return sshRefusals.badFlag('a quote is not closed')
  if (words.length > MAX_WORDS) return sshRefusals.badFlag(`it has more than ${MAX_WORDS} words`)
  const [first, ...rest] = words
  if (first === undefined) return sshRefusals.noCommand()
  if (first === 'help' || isHelp(first)) return { help: undefined }
  const kind = kinds.find((each) => each === first)
  if (!kind) return first.startsWith('-') ? sshRefusals.noCommand() : sshRefusals.unknownCommand(first)
  if (rest.some(isHelp)) return { help: kind }
  return readFlags(kind, rest)
}

function readFlags(kind: TunnelKind, words: readonly string[]): TunnelCommand | BindRefusal {
  const command: TunnelCommand = {
    kind,
    opts: {},
    labels: {},
    scheme: undefined,
    namedBy: undefined,
    metadata: '',
    name: '',
    description: '',
    forwardsProto: '',
  }
  const queue = [...words]
  for (let word = queue.shift(); word !== undefined; word = queue.shift()) {
    const [, name, given] = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word) ?? []
    // Where the service is, as the agent wants to know it; ssh knows from its forward.
    if (name === undefined && /^\d{1,5}$/.test(word)) continue
    if (name === undefined) return sshRefusals.badFlag(`it has the word \`${word.slice(0, 100)}\` where a flag belongs`)
    const flag = flags.find((each) => each.name === name)
    if (!flag?.for.includes(kind)) return notTaken(name, kind, flag)
    const value = given ?? (flag.takes === undefined ? 'true' : queue.shift())
    if (value === undefined) return sshRefusals.badFlag(`--${name} needs a value: --${name} <${flag.takes}>`)
    const problem = flag.note(value, command)
    if (problem !== undefined) return sshRefusals.badFlag(`--${name} ${problem}`)
  }
  return faultOf(command) ?? command
}

function faultOf({ kind, labels, opts }: TunnelCommand): BindRefusal | undefined {
  if (kind === 'labeled' && Object.keys(labels).length === 0) {
    return sshRefusals.badFlag('labeled needs at least one --label name=value')
  }
  const { WebhookVerification: hook, IPRestriction: networks } = opts as Record<string, Record<string, unknown>>
  if (hook && (hook.provider === undefined || hook.secret === undefined)) {
    return sshRefusals.badFlag('--verify-webhook and --verify-webhook-secret belong together')
  }
  if (networks && Array.isArray(networks.allow_cidrs) && networks.allow_cidrs.length === 0) {
    return sshRefusals.badFlag('--cidr-deny needs a --cidr-allow, such as 0.0.0.0/0: nobody else gets in')
  }
  return undefined
}

function notTaken(name: string, kind: TunnelKind, flag: Flag | undefined): BindRefusal {
  if (flag) return sshRefusals.unsupportedFlag(`--${name}`, `is for ${flag.for.join(' and ')}, not for ${kind}`)
  const why = unsupported.find(([begin]) => name.startsWith(begin))?.[1]
  if (why !== undefined) return sshRefusals.unsupportedFlag(`--${name}`, why)
  const known = flags.filter((each) => each.for.includes(kind)).map((each) => each.name)
  const guess = nearest(name, known)
  const hint = guess === undefined ? `see ${kind} --help` : `did you mean --${guess}`
  return sshRefusals.unsupportedFlag(`--${name}`, `is not a flag of ${kind}; ${hint}`)
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h' || word === '-help'
}
