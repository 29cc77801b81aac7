/** The configuration file of an agent, ours or ngrok's: the server, how to log in to it, and the tunnels. */
import { basename, dirname } from 'node:path'
import type { Secret } from '../../lib/secrets/secret.ts'
import { certificatesPem } from '../../link/options/file-values.ts'
import { OptionReader, type Problem } from '../../link/options/option-reader.ts'
import { LONGEST_SILENCE_MS } from '../../link/wire/heartbeat.ts'
import { type InspectListen, readInspectListen } from '../inspect/listen-address.ts'
import { parseServer, type ServerAddress } from '../server-address.ts'
import { type Connections, parseConnections } from '../session-connections.ts'
import { ConfigError, describeProblem } from './config-error.ts'
import type { Environment } from './find-file.ts'
import { isNgrokFile, readNgrokFile } from './ngrok-file.ts'
import { readBounded, textReader } from './text-files.ts'
import { readTunnel, type TunnelPlans } from './tunnel-options.ts'
import { parseYaml, type YamlFile } from './yaml-file.ts'

/** Shortest heartbeat interval that makes sense, in milliseconds. */
const SHORTEST_BEAT_MS = 1000

interface UpdateSettings {
  /** A folder or a URL. */
  readonly source: string
  /** Ed25519, as PEM or as the base64 of its DER. */
  readonly publicKey: string
}

export interface AgentFile {
  readonly path: string
  /** Whether it is a file of ngrok's agent. */
  readonly isNgrok: boolean
  /** The settings that are ignored and why, one line each. */
  readonly notes: readonly string[]
  readonly server: ServerAddress | undefined
  /** PEM. */
  readonly ca: string | undefined
  readonly authtoken: Secret | undefined
  /** An authtoken that was written for ngrok's servers; used only when there is no other. */
  readonly spareAuthtoken: Secret | undefined
  readonly metadata: string | undefined
  /** False when a file turns update checks off. */
  readonly updateChecks: boolean
  readonly update: UpdateSettings | undefined
  readonly remoteManagement: boolean
  readonly heartbeatIntervalMs: number | undefined
  readonly heartbeatToleranceMs: number | undefined
  readonly connections: Connections | undefined
  readonly inspectListen: InspectListen | undefined
  readonly tunnels: ReadonlyMap<string, TunnelPlans>
}

/**
 * Reads an existing file; rejects with a `ConfigError` that lists everything wrong with it. Only a file that the user named
 * may be one of ngrok's agent; the files that are found by default are ours.
 */
export async function readAgentFile(
  path: string,
  { env = {}, isNamed = false }: { env?: Environment; isNamed?: boolean } = {},
): Promise<AgentFile> {
  const name = basename(path)
  const yaml = await parseYaml(textOf(path), name)
  if (isNamed && isNgrokFile(yaml.values)) return ngrokFile(yaml, path, env)
  const problems: Problem[] = []
  const file = readAgent(new OptionReader(yaml.values, problems), path, env)
  const where = (at: readonly string[]): string => `${name} line ${yaml.lineOf(at)}`
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => describeProblem(problem, where)))
  return file
}

/** Problems are listed as compilers do, `ngrok.yml:7: …`, since there may be many. */
function ngrokFile({ values, lineOf }: YamlFile, path: string, env: Environment): AgentFile {
  const { file, problems, notes } = readNgrokFile(values, path, env)
  const describeAll = (all: readonly Problem[]): string[] =>
    all
      .map((problem) => ({ line: lineOf(problem.path), text: describeProblem(problem) }))
      .toSorted((a, b) => a.line - b.line)
      .map(({ line, text }) => `${basename(path)}:${line}: ${text}`)
  if (problems.length > 0) throw new ConfigError(describeAll(problems))
  return { ...file, notes: describeAll(notes) }
}

function readAgent(reader: OptionReader, path: string, env: Environment): AgentFile {
  const readText = textReader(dirname(path))
  // Versions 2 and 3 are formats of ngrok's agent.
  reader.choice('version', [1])
  // Interval and tolerance together must not exceed the time that a server waits.
  const beat = { from: SHORTEST_BEAT_MS, to: LONGEST_SILENCE_MS / 2 }
  const file = {
    path,
    isNgrok: false,
    notes: [],
    spareAuthtoken: undefined,
    server: reader.parsed('server', parseServer),
    ca: reader.parsed('ca', (text) => certificatesPem(readText(text))),
    authtoken: reader.secret('authtoken'),
    metadata: reader.text('metadata'),
    updateChecks: reader.flag('update_checks') ?? true,
    update: readUpdate(reader, readText),
    remoteManagement: reader.flag('remote_management') ?? true,
    heartbeatIntervalMs: reader.duration('heartbeat_interval', beat),
    heartbeatToleranceMs: reader.duration('heartbeat_tolerance', beat),
    connections: reader.parsed('connections', parseConnections),
    inspectListen: readInspectListen(reader, 'inspect_listen'),
    tunnels: readTunnels(reader.map('tunnels'), { readText, env }),
  }
  reader.finish()
  return file
}

function readUpdate(reader: OptionReader, readText: (text: string) => string): UpdateSettings | undefined {
  const map = reader.map('update')
  if (!map) return undefined
  const source = map.word('source')
  const publicKey = map.parsed('public_key', (text) => (isKey(text) ? text : readText(text)))
  map.finish()
  if (source !== undefined && publicKey !== undefined) return { source, publicKey }
  return map.fault('', 'needs `source` and `public_key`')
}

/** How the base64 of an Ed25519 key in DER always begins. */
function isKey(text: string): boolean {
  return text.startsWith('MCowBQYDK2Vw')
}

function readTunnels(
  map: OptionReader | undefined,
  context: { readonly readText: (text: string) => string; readonly env: Environment },
): Map<string, TunnelPlans> {
  const tunnels = new Map<string, TunnelPlans>()
  for (const name of map?.keys() ?? []) {
    if (!/^[\w.-]{1,64}$/.test(name)) map?.fault(name, 'must be named with letters, digits, `_`, `-` and `.` only')
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
