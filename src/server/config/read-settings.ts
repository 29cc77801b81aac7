/** Reads the settings from flags, environment and file into the one frozen value that the server is built from. */
import { resolve } from 'node:path'
import type { LogFormat, LogLevel } from '../../lib/log/create-log.ts'
import type { Secret } from '../../lib/secrets/secret.ts'
import type { Given } from './given.ts'
import { hostNodeName, reachedAt } from './own-address.ts'
import { type DnsKey, type Listen, listen, type PortRange } from './parse-value.ts'
import { SettingsError } from './settings-error.ts'
import { gather, type SettingSources } from './settings-sources.ts'
import { CLUSTER_LISTEN, table, type Values } from './settings-table.ts'

export interface Settings {
  /** An absolute path, like every path here. */
  readonly dataDir: string
  /** `sqlite:<absolute path>` or `postgres://…`. It may contain a password, so do not print it. */
  readonly databaseUrl: string
  readonly keyFile: string
  readonly apiListen: Listen
  readonly apiUrl: string | null
  /** Requests a minute for each key; 0 means no limit. */
  readonly apiRateLimit: number
  readonly metricsListen: Listen
  readonly agentListen: Listen
  readonly sshListen: Listen
  readonly agentNames: readonly string[]
  /** Where agents reach this node; null without other nodes. Port 0 stands for the one that `agentListen` gets. */
  readonly agentAddress: Listen | null
  /** Where other nodes connect; null without other nodes. */
  readonly clusterListen: Listen | null
  /** Where other nodes reach this one; null without other nodes. Port 0 stands for the one that `clusterListen` gets. */
  readonly clusterAddress: Listen | null
  readonly nodeName: string
  /** Whether nodes share the capacity of a rate limit, instead of each allowing all of it. */
  readonly sharedLimits: boolean
  readonly tlsMinVersion: '1.2' | '1.3'
  readonly httpsListen: Listen
  /** The port of `httpsListen` by default; 0 when the system chooses that port. */
  readonly publicHttpsPort: number
  readonly httpListen: Listen
  /** The port of `httpListen` by default; 0 when the system chooses that port. */
  readonly publicHttpPort: number
  readonly trustedProxies: readonly string[]
  readonly outboundAllow: readonly string[]
  /** For each of the next five 0 means no limit; requests and handshakes are per second. */
  readonly maxConnections: number
  readonly maxConnectionsPerSource: number
  readonly maxRequestsPerSource: number
  readonly maxHandshakes: number
  readonly maxHandshakesPerSource: number
  readonly maxHeaderBytes: number
  readonly maxHeaders: number
  readonly headerTimeoutMs: number
  readonly idleTimeoutMs: number
  /** Whether errors sent to visitors also carry ngrok's number. */
  readonly ngrokErrorHeader: boolean
  readonly tcpListen: string
  readonly tcpPorts: PortRange
  readonly domain: string
  readonly region: string
  /** Memory for request bodies that modules read, in bytes. */
  readonly bodyMemory: number
  readonly exchangeMemory: number
  /** Processes that serve visitors and agents; 0 means one process for everything. */
  readonly workers: number
  readonly drainTimeoutMs: number
  readonly stopDelayMs: number
  readonly logLevel: LogLevel
  readonly logFormat: LogFormat
  /** A folder of certificates and keys; null when there is none. */
  readonly certificateDir: string | null
  /** Whether the API listener speaks TLS. */
  readonly apiTls: boolean
  /** Whether agents are shown the certificate of the name that they ask for, where it has one. */
  readonly agentCertificate: 'own' | 'public'
  /** Whether names outside of `domain` must be proven. */
  readonly verifyDomains: boolean
  /** `address` or `address:port`; those of this machine when there are none. */
  readonly dnsServers: readonly string[]
  /** The URL of an ACME directory; empty when certificates are not ordered. */
  readonly acmeDirectory: string
  readonly acmeEmail: string
  /** A file of certificates in PEM; null to trust the usual authorities. */
  readonly acmeCa: string | null
  readonly acmeEabKeyId: string
  readonly acmeOrdersPerHour: number
  readonly acmeEndpointsPerWeek: number
  readonly acmeDnsCommand: string | null
  readonly acmeDnsServer: Listen | null
  readonly acmeDnsKey: DnsKey | null
  readonly acmeEabKey: Secret | null
  readonly bootstrap: { readonly apiKey: Secret | null; readonly authtoken: Secret | null }
}

/** Reads, checks and completes the settings; throws a `SettingsError` that lists every problem. */
export function readSettings(sources: SettingSources): Settings {
  const { given, problems: misnamed } = gather(sources)
  const problems = [...misnamed]
  const values: Record<string, unknown> = {}
  for (const [field, setting] of Object.entries(table)) {
    const found = given.get(setting.name) ?? (setting.default === null ? undefined : byDefault(setting.default))
    if (found === undefined) continue
    try {
      values[field] = setting.parse(found.text)
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error)
      problems.push(`\`${setting.name}\` (${found.from}) ${fault}, for example \`${setting.example}\``)
    }
  }
  if (problems.length > 0) throw new SettingsError(problems)
  // The loop has filled in every field that has a default; `Parsed` says which have none.
  const parsed = values as Parsed
  const fault = clusterFault(parsed, given.get(table.clusterListen.name))
  if (fault !== undefined) throw new SettingsError([fault])
  return deepFreeze(complete(parsed, sources.cwd))
}

/** Settings whose default is null in the table. */
type Undefaulted =
  | 'databaseUrl'
  | 'keyFile'
  | 'apiUrl'
  | 'agentAddress'
  | 'clusterListen'
  | 'clusterAddress'
  | 'nodeName'
  | 'publicHttpsPort'
  | 'publicHttpPort'
  | 'certificateDir'
  | 'acmeCa'
  | 'acmeDnsCommand'
  | 'acmeDnsServer'
  | 'acmeDnsKey'
  | 'acmeEabKey'
  | 'bootstrapApiKey'
  | 'bootstrapAuthtoken'
type Parsed = Omit<Values, Undefaulted> & Partial<Pick<Values, Undefaulted>>

/** Fills in defaults that depend on other settings, and makes paths absolute. */
function complete(values: Parsed, cwd: string): Settings {
  const { bootstrapApiKey = null, bootstrapAuthtoken = null, ...plain } = values
  const dataDir = resolve(cwd, values.dataDir)
  const { clusterListen = isPostgres(values) ? listen(CLUSTER_LISTEN) : null, agentListen } = values
  const clusterAddress = clusterListen && (values.clusterAddress ?? reachedAt(clusterListen))
  return {
    ...plain,
    dataDir,
    databaseUrl: absoluteDatabase(values.databaseUrl ?? `sqlite:${resolve(dataDir, 'postern.db')}`, cwd),
    keyFile: resolve(cwd, values.keyFile ?? resolve(dataDir, 'secret.key')),
    apiUrl: values.apiUrl ?? null,
    agentAddress: clusterAddress && (values.agentAddress ?? reachedAt(agentListen, clusterAddress.host)),
    clusterListen,
    clusterAddress,
    nodeName: values.nodeName ?? hostNodeName(),
    publicHttpsPort: values.publicHttpsPort ?? values.httpsListen.port,
    publicHttpPort: values.publicHttpPort ?? values.httpListen.port,
    certificateDir: values.certificateDir === undefined ? null : resolve(cwd, values.certificateDir),
    acmeCa: values.acmeCa === undefined ? null : resolve(cwd, values.acmeCa),
    acmeDnsCommand: values.acmeDnsCommand === undefined ? null : resolve(cwd, values.acmeDnsCommand),
    acmeDnsServer: values.acmeDnsServer ?? null,
    acmeDnsKey: values.acmeDnsKey ?? null,
    acmeEabKey: values.acmeEabKey ?? null,
    bootstrap: { apiKey: bootstrapApiKey, authtoken: bootstrapAuthtoken },
  }
}

/** Why this node cannot have other nodes although `cluster-listen` was given. */
function clusterFault(values: Parsed, given: Given | undefined): string | undefined {
  if (!values.clusterListen || isPostgres(values)) return undefined
  const { name } = table.clusterListen
  return `\`${name}\` (${given?.from}) needs a \`database-url\` of PostgreSQL; nodes cannot share a SQLite database`
}

function isPostgres({ databaseUrl = '' }: Parsed): boolean {
  return databaseUrl.startsWith('postgres')
}

function absoluteDatabase(url: string, cwd: string): string {
  const [, path] = /^sqlite:(.*)$/s.exec(url) ?? []
  return path === undefined || path === ':memory:' ? url : `sqlite:${resolve(cwd, path)}`
}

function byDefault(text: string): Given {
  return { text, from: 'default' }
}

export function deepFreeze<T extends object>(value: T): T {
  for (const each of Object.values(value)) if (typeof each === 'object' && each !== null) deepFreeze(each)
  return Object.freeze(value)
}
