/** `postern-agent.yml`: the server, who we are to it, and the tunnels. */
import { basename, dirname } from 'node:path'
import type { Secret } from '../../lib/secrets/secret.ts'
import { certificatesPem } from '../../options/file-values.ts'
import { isMap, type Problem, Reader } from '../../options/reader.ts'
import { LONGEST_SILENCE_MS } from '../../wire/heartbeat.ts'
import { parseServer, type ServerAddress } from '../server-address.ts'
import { ConfigError, describeProblem } from './config-error.ts'
import type { Environment } from './find-file.ts'
import { readBounded, textReader } from './text-files.ts'
import { readTunnel, type TunnelPlans } from './tunnel-options.ts'

/** The shortest heartbeat that is of use, in milliseconds. */
const SHORTEST_BEAT_MS = 1000

export interface UpdateSettings {
  /** A folder or a URL. */
  readonly source: string
  /** Ed25519, as PEM or as the base64 of its DER. */
  readonly publicKey: string
}

export interface AgentFile {
  readonly path: string
  readonly server: ServerAddress | undefined
  /** PEM. */
  readonly ca: string | undefined
  readonly authtoken: Secret | undefined
  readonly metadata: string | undefined
  readonly updateChecks: boolean
  readonly update: UpdateSettings | undefined
  readonly remoteManagement: boolean
  readonly heartbeatIntervalMs: number | undefined
  readonly heartbeatToleranceMs: number | undefined
  readonly tunnels: ReadonlyMap<string, TunnelPlans>
}

/** Reads a file that is there; rejects with a `ConfigError` that names all that is wrong with it. */
export async function readAgentFile(path: string, env: Environment = {}): Promise<AgentFile> {
  const { values, where } = await parseYaml(textOf(path), basename(path))
  const problems: Problem[] = []
  const file = readAgent(new Reader(values, problems), path, env)
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => describeProblem(problem, where)))
  return file
}

function readAgent(reader: Reader, path: string, env: Environment): AgentFile {
  const readText = textReader(dirname(path))
  reader.choice('version', [1])
  // Interval and tolerance together are no longer than servers wait.
  const beat = { from: SHORTEST_BEAT_MS, to: LONGEST_SILENCE_MS / 2 }
  const file = {
    path,
    server: reader.parsed('server', parseServer),
    ca: reader.parsed('ca', (text) => certificatesPem(readText(text))),
    authtoken: reader.secret('authtoken'),
    metadata: reader.text('metadata'),
    updateChecks: reader.flag('update_checks') ?? true,
    update: readUpdate(reader, readText),
    remoteManagement: reader.flag('remote_management') ?? true,
    heartbeatIntervalMs: reader.duration('heartbeat_interval', beat),
    heartbeatToleranceMs: reader.duration('heartbeat_tolerance', beat),
    tunnels: readTunnels(reader.map('tunnels'), { readText, env }),
  }
  reader.finish()
  return file
}

function readUpdate(reader: Reader, readText: (text: string) => string): UpdateSettings | undefined {
  const map = reader.map('update')
  if (!map) return undefined
  const source = map.word('source')
  const publicKey = map.parsed('public_key', (text) => (isKey(text) ? text : readText(text)))
  map.finish()
  if (source !== undefined && publicKey !== undefined) return { source, publicKey }
  return map.fault('', 'needs `source` and `public_key`')
}

/** The base64 of an Ed25519 key, as the DER of it always begins. */
function isKey(text: string): boolean {
  return text.startsWith('MCowBQYDK2Vw')
}

function readTunnels(
  map: Reader | undefined,
  context: { readonly readText: (text: string) => string; readonly env: Environment },
): Map<string, TunnelPlans> {
  const tunnels = new Map<string, TunnelPlans>()
  for (const name of map?.keys() ?? []) {
    if (!/^[\w.-]{1,64}$/.test(name)) map?.fault(name, 'must be named with letters, digits, `_`, `-` and `.`')
    const each = map?.map(name)
    const plans = each && readTunnel(each, { name, ...context })
    if (plans) tunnels.set(name, plans)
  }
  return tunnels
}

function textOf(path: string): string {
  try {
    return readBounded(path)
  } catch (error) {
    throw new ConfigError([`the configuration file ${error instanceof Error ? error.message : String(error)}`])
  }
}

interface Parsed {
  readonly values: Readonly<Record<string, unknown>>
  /** The line on which a key stands. */
  readonly where: (path: readonly string[]) => string
}

async function parseYaml(text: string, name: string): Promise<Parsed> {
  // Loaded on use: an agent without a file starts without it.
  const { isMap: isYamlMap, isScalar, LineCounter, parseDocument, visit } = await import('yaml')
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, strict: true })
  const at = (offset: number): string => `${name} line ${lines.linePos(offset).line}`
  const faults = document.errors.map(({ code, message, pos }) =>
    code === 'DUPLICATE_KEY'
      ? `${at(pos[0])} sets a key for the second time; remove one of the two`
      : // The parser quotes what it stumbled over, which may be a secret; that part is left out.
        `${at(pos[0])} is not valid YAML: ${message.replace(/: .*$/s, '')}`,
  )
  visit(document, {
    Alias: (_, { range }) => void faults.push(`${at(range?.[0] ?? 0)} has an alias; write the value out`),
  })
  if (faults.length > 0) throw new ConfigError(faults)
  const values: unknown = document.toJS() ?? {}
  if (!isMap(values)) throw new ConfigError([`${name} must be a map of settings, for example \`server: host:7443\``])
  const where = (path: readonly string[]): string => {
    let node: unknown = document.contents
    let offset = 0
    for (const key of path) {
      if (!isYamlMap(node)) break
      const pair = node.items.find((each) => isScalar(each.key) && String(each.key.value) === key)
      if (!pair || !isScalar(pair.key)) break
      offset = pair.key.range?.[0] ?? offset
      node = pair.value
    }
    return at(offset)
  }
  return { values, where }
}
