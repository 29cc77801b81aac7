/** Which server an agent connects to and with what, from flags, environment and files. */
import { Secret } from '../../lib/secrets/secret.ts'
import { certificatesPem } from '../../link/options/file-values.ts'
import { DEFAULT_INSPECT, type InspectListen, isLoopback, parseInspectListen } from '../inspect/listen-address.ts'
import { DEFAULT_SERVER, formatServer, parseServer, type ServerAddress } from '../server-address.ts'
import { parseConnections } from '../session-connections.ts'
import { type AgentFile, readAgentFile } from './agent-file.ts'
import { ConfigError } from './config-error.ts'
import { type Environment, type FoundFile, findAgentFiles, LOCAL_FILE, type StartedFrom } from './find-file.ts'
import { textReader } from './text-files.ts'

export interface AgentFlags {
  readonly config?: string | undefined
  readonly server?: string | undefined
  readonly ca?: string | undefined
  readonly authtoken?: Secret | undefined
  readonly connections?: string | undefined
  readonly inspectListen?: string | undefined
  /** Whether the command describes its tunnel itself, so that it may need no file. */
  readonly hasTunnel?: boolean
}

/** What only one file has, or what a configuration always has. */
type NotShared = 'path' | 'isNgrok' | 'spareAuthtoken' | 'server' | 'metadata' | 'inspectListen'

export interface AgentConfig extends Omit<AgentFile, NotShared> {
  readonly server: ServerAddress
  readonly metadata: string
  readonly inspectListen: InspectListen
  /** The file that describes the tunnels, for messages. */
  readonly tunnelFile: string
}

type Source = 'flag' | 'environment' | FoundFile['origin'] | 'default'

/** A value and where it was given. */
interface Sourced<T> {
  readonly value: T
  readonly by: Source
}

/** Rejects with a `ConfigError` that lists everything wrong. */
export async function readAgentConfig(flags: AgentFlags, from: StartedFrom): Promise<AgentConfig> {
  const environment = fromEnvironment(from.env)
  const found = findAgentFiles(flags.config ?? environment.config, from)
  const isEnough = flags.hasTunnel && (flags.server ?? environment.server) && (flags.authtoken ?? environment.authtoken)
  const skipped: string[] = []
  const files = await withLogin(await readAll(found, from.env, isEnough ? skipped : undefined), from)
  const problems: string[] = []
  const given = { flags, environment, files, problems }
  const server = chooseServer(given)
  const authtoken = first<Secret>([
    ['flag', flags.authtoken],
    ['environment', environment.authtoken],
    ...files.map(({ origin, file }) => [origin, file.authtoken] as const),
    ...files.map(({ origin, file }) => [origin, file.spareAuthtoken] as const),
  ])
  if (server && authtoken) problems.push(...tokenLeaks(server, authtoken, given))
  const ca = chooseCa(given, from.cwd, server)
  const [special] = files
  if (special?.origin === 'found' && special.file.update) {
    problems.push(
      `\`update\` (${LOCAL_FILE}) must be in your own file or in one named with --config, since it installs programs`,
    )
  }
  const listen = special?.file.inspectListen
  if (special?.origin === 'found' && listen && !isLoopback(listen)) {
    problems.push(
      `\`inspect_listen\` (${LOCAL_FILE}) must be a loopback address; to open the inspector to others, use ` +
        `--inspect-listen or --config ${LOCAL_FILE}`,
    )
  }
  const connections = readFlag('connections', flags.connections, parseConnections, problems)
  const inspectListen = readFlag('inspect_listen', flags.inspectListen, parseInspectListen, problems)
  if (problems.length > 0 || !server) throw new ConfigError(problems)
  const pick = <K extends keyof AgentFile>(key: K) =>
    files.map(({ file }) => file[key]).find((each) => each !== undefined)
  return {
    server: server.value,
    ca,
    authtoken: authtoken?.value,
    metadata: pick('metadata') ?? '',
    // A file that cannot be read may forbid both.
    updateChecks: skipped.length === 0 && files.every(({ file }) => file.updateChecks),
    update: pick('update'),
    remoteManagement: skipped.length === 0 && files.every(({ file }) => file.remoteManagement),
    heartbeatIntervalMs: pick('heartbeatIntervalMs'),
    heartbeatToleranceMs: pick('heartbeatToleranceMs'),
    connections: connections ?? pick('connections'),
    inspectListen: inspectListen ?? pick('inspectListen') ?? DEFAULT_INSPECT,
    tunnels: files.find(({ file }) => file.tunnels.size > 0)?.file.tunnels ?? new Map(),
    notes: [...skipped, ...files.flatMap(({ file }) => file.notes)],
    tunnelFile: files.map(({ file }) => file.path)[0] ?? LOCAL_FILE,
  }
}

/** An empty variable counts as unset, since compose files and CI pass missing values that way. */
function fromEnvironment(env: Environment): AgentFlags {
  return {
    config: env.POSTERN_AGENT_CONFIG || undefined,
    server: env.POSTERN_SERVER || undefined,
    ca: env.POSTERN_CA || undefined,
    authtoken: env.POSTERN_AUTHTOKEN ? new Secret(env.POSTERN_AUTHTOKEN) : undefined,
  }
}

interface ReadFile {
  readonly origin: FoundFile['origin']
  readonly file: AgentFile
}

/** A file that nobody named is left out if it is broken and `skipped` is given, which gets the reasons. */
async function readAll(found: readonly FoundFile[], env: Environment, skipped?: string[]): Promise<ReadFile[]> {
  const problems: string[] = []
  const files: ReadFile[] = []
  for (const { path, origin } of found) {
    try {
      // A file found in the working folder must not send this user's secrets to a server or issuer of its choice.
      const trusted = origin === 'found' ? {} : env
      files.push({ origin, file: await readAgentFile(path, { env: trusted, isNamed: origin === 'named' }) })
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      if (!skipped || origin === 'named') problems.push(...error.problems)
      else skipped.push(...error.problems, `${path} is ignored; the server cannot restart, stop or update this agent`)
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return files
}

/** A file of ngrok's agent rarely names a Postern server, so the server of `postern login` is used with it. */
async function withLogin(files: ReadFile[], from: StartedFrom): Promise<readonly ReadFile[]> {
  const [named] = files
  if (!named?.file.isNgrok) return files
  const home = findAgentFiles(undefined, from).filter(({ origin }) => origin === 'home')
  const logins = await readAll(home, from.env)
  return [named, ...logins.map(({ origin, file }) => ({ origin, file: { ...file, tunnels: new Map() } }))]
}

/** All that was given, and what is wrong with it. */
interface Given {
  readonly flags: AgentFlags
  readonly environment: AgentFlags
  readonly files: readonly ReadFile[]
  readonly problems: string[]
}

function chooseServer({ flags, environment, files, problems }: Given): Sourced<ServerAddress> | undefined {
  const written = first<string>([
    ['flag', flags.server],
    ['environment', environment.server],
  ])
  const inFile = first<ServerAddress>(files.map(({ origin, file }) => [origin, file.server] as const))
  if (!written && inFile) return inFile
  const { value: text, by } = written ?? { value: DEFAULT_SERVER, by: 'default' as const }
  const from = by === 'flag' ? '--server' : 'POSTERN_SERVER'
  const value = parsed('server', from, () => parseServer(text), problems)
  return value && { value, by }
}

/** The value of a flag whose key has the same name. */
function readFlag<T>(key: string, text: string | undefined, parse: (text: string) => T, problems: string[]) {
  if (text === undefined) return undefined
  return parsed(key, `--${key.replaceAll('_', '-')}`, () => parse(text), problems)
}

/** The value of a key; a fault is added to `problems`, with the flag or variable that the value is `from`. */
function parsed<T>(key: string, from: string, parse: () => T, problems: string[]): T | undefined {
  try {
    return parse()
  } catch (error) {
    problems.push(`\`${key}\` (${from}) ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

/** The CA of a file is trusted only for the server of the same file. */
function chooseCa(
  { flags, environment, files, problems }: Given,
  cwd: string,
  server: Sourced<ServerAddress> | undefined,
): string | undefined {
  const written = flags.ca ?? environment.ca
  if (written === undefined) {
    return files.find(({ file }) => file.ca !== undefined && isSame(file.server, server?.value))?.file.ca
  }
  const from = flags.ca === undefined ? 'POSTERN_CA' : '--ca'
  return parsed('ca', from, () => certificatesPem(textReader(cwd)(written)), problems)
}

/**
 * A file found in the working folder, perhaps part of somebody else's project, must not send this user's authtoken to a
 * server of its choice.
 */
function tokenLeaks(
  server: Sourced<ServerAddress>,
  authtoken: Sourced<Secret>,
  { environment, files }: Given,
): string[] {
  if (server.by !== 'found' || authtoken.by === 'found' || authtoken.by === 'flag') return []
  const home = files.find(({ origin }) => origin === 'home')
  if (authtoken.by === 'home' && isSame(home?.file.server, server.value)) return []
  const whose = authtoken.by === 'home' ? 'of `postern login`' : 'in POSTERN_AUTHTOKEN'
  const set = environment.server === undefined ? ', POSTERN_SERVER' : ''
  return [
    `\`server\` (${LOCAL_FILE}) names ${formatServer(server.value)}, but your authtoken ${whose} was not given for that ` +
      `server; to send it there anyway, use --server${set} or --config ${LOCAL_FILE}`,
  ]
}

function isSame(a: ServerAddress | undefined, b: ServerAddress | undefined): boolean {
  const at = (each: ServerAddress | undefined): string => (each ? formatServer(each) : DEFAULT_SERVER)
  return at(a).toLowerCase() === at(b).toLowerCase()
}

function first<T>(candidates: readonly (readonly [by: Source, value: T | undefined])[]): Sourced<T> | undefined {
  for (const [by, value] of candidates) if (value !== undefined) return { value, by }
  return undefined
}
