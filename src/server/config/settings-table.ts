/**
 * Every setting of the server: flags, environment variables, file keys, help and the reference page derive from this table.
 *
 * One thing: one table.
 */
import { logFormats, logLevels } from '../../lib/log/create-log.ts'
import { shared } from '../../model/shared.ts'
import { acmeTable } from './acme-table.ts'
import { certificateTable } from './certificate-table.ts'
import * as parse from './parse-value.ts'
import { type Setting, setting } from './setting-kinds.ts'

/** The choices for the lowest TLS version of agents. */
const tlsVersions = ['1.2', '1.3'] as const

/** Where other nodes connect by default. */
export const CLUSTER_LISTEN = '0.0.0.0:7444'

export const table = {
  dataDir: setting('data-dir <folder>', parse.path, {
    default: './data',
    about: 'folder for the database, keys and certificates',
    example: '/var/lib/postern',
  }),
  /** It may contain a password, so do not print it. */
  databaseUrl: setting('database-url <url>', parse.databaseUrl, {
    default: null,
    defaultNote: 'sqlite:<data-dir>/postern.db',
    about: 'the database: a SQLite file, or PostgreSQL, whose data several nodes can share',
    example: 'postgres://postern@db.example.com/postern',
  }),
  keyFile: setting('key-file <path>', parse.path, {
    default: null,
    defaultNote: '<data-dir>/secret.key',
    about: 'file of the key that encrypts secrets in the database; created on first start',
    example: '/etc/postern/secret.key',
  }),
  apiListen: setting('api-listen <host:port>', parse.listen, {
    default: '127.0.0.1:7400',
    about: 'address of the management API',
    example: '127.0.0.1:7400',
  }),
  apiUrl: setting('api-url <url>', parse.baseUrl, {
    default: null,
    defaultNote: "the caller's own Host",
    about: 'URL by which callers reach the API; `uri` fields begin with it',
    example: 'https://api.example.com',
    isLive: true,
  }),
  apiRateLimit: setting('api-rate-limit <number>', parse.count, {
    default: '0',
    about: 'API requests per minute for each user or bot, all its keys together; 0 means no limit',
    example: '600',
    isLive: true,
  }),
  metricsListen: setting('metrics-listen <host:port>', parse.listen, {
    default: '127.0.0.1:7401',
    about: 'address of `/metrics`',
    example: '127.0.0.1:7401',
  }),
  agentListen: setting('agent-listen <host:port>', parse.listen, {
    default: '0.0.0.0:7443',
    about: 'address at which agents connect, over TLS',
    example: '0.0.0.0:7443',
  }),
  agentNames: setting('agent-names <names>', parse.hosts, {
    default: '',
    about: 'further names and addresses by which agents reach this server, separated by commas',
    example: 'tunnels.example.com,192.0.2.7',
    isLive: true,
  }),
  /** Null without other nodes. Port 0 stands for the one that `agentListen` gets. */
  agentAddress: setting('agent-address <host:port>', parse.address, {
    default: null,
    defaultNote: 'the host of --cluster-address and the port of --agent-listen',
    about: 'address at which agents reach this particular node, if several nodes share one name; agents are told it',
    example: 'node-1.example.com:7443',
  }),
  sshListen: setting('ssh-listen <host:port>', parse.listen, {
    default: '0.0.0.0:2222',
    about: 'address of the SSH gateway, at which `ssh -R` connects',
    example: '0.0.0.0:22',
  }),
  tlsMinVersion: setting('tls-min-version <version>', parse.oneOf(tlsVersions), {
    default: '1.2',
    about: 'lowest TLS version for agents and, with --api-tls, for the API: 1.2 or 1.3; edges set their own',
    example: '1.3',
    isLive: true,
  }),
  httpsListen: setting('https-listen <host:port>', parse.listen, {
    default: '0.0.0.0:8443',
    about: 'address of HTTPS and TLS edges, which share it by name',
    example: '0.0.0.0:443',
  }),
  /** 0 when the system chooses the port of `httpsListen`. */
  publicHttpsPort: setting('public-https-port <port>', parse.port, {
    default: null,
    defaultNote: 'the port of --https-listen',
    about: 'port at which visitors reach HTTPS and TLS edges',
    example: '443',
  }),
  httpListen: setting('http-listen <host:port>', parse.listen, {
    default: '0.0.0.0:8080',
    about: 'address of plain HTTP: endpoints that ask for it, and redirects to HTTPS',
    example: '0.0.0.0:80',
  }),
  /** 0 when the system chooses the port of `httpListen`. */
  publicHttpPort: setting('public-http-port <port>', parse.port, {
    default: null,
    defaultNote: 'the port of --http-listen',
    about: 'port at which visitors reach plain HTTP',
    example: '80',
  }),
  trustedProxies: setting('trusted-proxies <networks>', parse.networks, {
    default: '',
    about:
      'networks of load balancers in front of the listeners of visitors and agents, separated by commas; they must send a PROXY header',
    example: '10.0.0.0/24,2001:db8::/64',
    isLive: true,
  }),
  outboundAllow: setting('outbound-allow <addresses>', parse.outboundAllowed, {
    default: '',
    about:
      'what modules may send requests to although it is not public, such as your own identity provider: `host:port`, a network, or a network with a port, separated by commas. Listeners of this server for visitors need an entry with a port; its other listeners are never reached',
    example: '10.20.0.0/16,127.0.0.1:9000,id.example.com:443',
    isLive: true,
  }),
  maxConnections: setting('max-connections <number>', parse.count, {
    default: '100000',
    about: 'most open connections, counted separately for visitors, agents and the API; 0 means no limit',
    example: '20000',
    isLive: true,
  }),
  maxConnectionsPerSource: setting('max-connections-per-source <number>', parse.count, {
    default: '0',
    about: 'most open connections from one source, which is an IPv4 address or an IPv6 /64 network; 0 means no limit',
    example: '1000',
    isLive: true,
  }),
  maxRequestsPerSource: setting('max-requests-per-source <number>', parse.count, {
    default: '0',
    about: 'most HTTP requests per second from one source, with bursts of twice as many; 0 means no limit',
    example: '200',
    isLive: true,
  }),
  maxHandshakes: setting('max-handshakes <number>', parse.count, {
    default: '0',
    about:
      'most TLS handshakes per second, counted separately for visitors and agents, with bursts of twice as many; 0 means no limit',
    example: '500',
    isLive: true,
  }),
  maxHandshakesPerSource: setting('max-handshakes-per-source <number>', parse.count, {
    default: '0',
    about: 'most TLS handshakes per second from one source, with bursts of twice as many; 0 means no limit',
    example: '50',
    isLive: true,
  }),
  maxHeaderBytes: setting('max-header-bytes <bytes>', parse.countBetween(8 * 1024, 128 * 1024), {
    default: '65536',
    about: 'maximum size of the request line and headers of a visitor, in bytes, from 8192 to 131072',
    example: '131072',
    isLive: true,
  }),
  maxHeaders: setting('max-headers <number>', parse.countBetween(20, 1000), {
    default: '100',
    about: 'most headers in one request of a visitor, from 20 to 1000',
    example: '200',
    isLive: true,
  }),
  headerTimeoutMs: setting('header-timeout <duration>', parse.durationBetween('1s', '5m'), {
    default: '15s',
    about: 'how long the request line and headers of a visitor may take over HTTP/1.1, from 1s to 5m',
    example: '30s',
    isLive: true,
  }),
  idleTimeoutMs: setting('idle-timeout <duration>', parse.durationBetween('1s', '24h'), {
    default: '5m',
    about:
      'how long a connection of a visitor may be idle, from 1s to 24h; open requests and WebSockets get at least 5m',
    example: '1h',
    isLive: true,
  }),
  ngrokErrorHeader: setting('ngrok-error-header [on|off]', parse.onOff, {
    default: 'on',
    about:
      "`on` or `off`: whether errors sent to visitors also carry ngrok's number in the header `ngrok-error-code`, for scripts written for ngrok",
    example: 'off',
    isLive: true,
  }),
  tcpListen: setting('tcp-listen <host>', parse.host, {
    default: '0.0.0.0',
    about: 'address on which the ports of --tcp-ports are opened',
    example: '0.0.0.0',
  }),
  tcpPorts: setting('tcp-ports <from-to>', parse.portRange, {
    default: '20000-20999',
    about: 'ports for TCP edges and TCP endpoints',
    example: '20000-20999',
  }),
  domain: setting('domain <name>', parse.domain, {
    default: 'localhost',
    about: 'domain under which random names are generated',
    example: 'tunnels.example.com',
  }),
  region: setting('region <name>', parse.region, {
    default: 'local',
    about: 'region that the API shows for sessions and tunnels of this node',
    example: 'eu-1',
  }),
  /** Null without other nodes. */
  clusterListen: setting('cluster-listen <host:port|off>', parse.listenOrOff, {
    default: null,
    defaultNote: `${CLUSTER_LISTEN} with PostgreSQL, off with SQLite`,
    about: 'address at which other nodes of the same database connect; `off` leaves this node on its own',
    example: '10.0.0.5:7444',
  }),
  /** Null without other nodes. Port 0 stands for the one that `clusterListen` gets. */
  clusterAddress: setting('cluster-address <host:port>', parse.address, {
    default: null,
    defaultNote: 'the address of this machine, with the port of --cluster-listen',
    about: 'address at which other nodes reach this one; they learn it from the database',
    example: '10.0.0.5:7444',
  }),
  nodeName: setting('node <name>', parse.nodeName, {
    default: null,
    defaultNote: "the host's name",
    about: 'name of this node in `/nodes`: 1 to 63 letters, digits, dots, hyphens and underscores',
    example: 'node-1',
  }),
  sharedLimits: setting('shared-limits [on|off]', parse.onOff, {
    default: 'off',
    about:
      '`on` or `off`: whether nodes share the capacity of `rate-limit` in traffic policies, so that each allows its part of it; set the same on all nodes',
    example: 'on',
    isLive: true,
  }),
  bodyMemory: setting('body-memory <size>', parse.size, {
    default: `${shared.bodyMemory.most}MiB`,
    about:
      'memory for request bodies that modules read, such as webhooks to verify; when it is used up, visitors get 503. Divided among workers, each of which gets at least 48 MiB',
    example: '256MiB',
    isLive: true,
  }),
  exchangeMemory: setting('exchange-memory <size>', parse.size, {
    default: '64MiB',
    about:
      'memory of a node for exchanges: a quarter is for the latest exchanges of visitors, the rest for heads and bodies that captures keep',
    example: '16MiB',
  }),
  workers: setting('workers <number>', parse.workers, {
    default: 'auto',
    about:
      'number of processes that serve visitors and agents, besides one for the API and the database; `auto` means one per core as far as memory allows, 0 means one process for everything',
    example: '4',
  }),
  drainTimeoutMs: setting('drain-timeout <duration>', parse.duration, {
    default: '30s',
    about: 'how long a stopping server waits for open connections and requests to finish',
    example: '30s',
    isLive: true,
  }),
  stopDelayMs: setting('stop-delay <duration>', parse.duration, {
    default: '0s',
    about:
      'how long a stopping server still accepts connections after `/readyz` reports that it is not ready, so that a load balancer notices first',
    example: '5s',
    isLive: true,
  }),
  logLevel: setting('log-level <level>', parse.oneOf(logLevels), {
    default: 'info',
    about: `lowest level that is logged: ${logLevels.join(', ')}`,
    example: 'debug',
    isLive: true,
  }),
  logFormat: setting('log-format <format>', parse.oneOf(logFormats), {
    default: 'auto',
    about: '`json` or `pretty` lines; `auto` is pretty on a terminal',
    example: 'json',
  }),
  ...certificateTable,
  ...acmeTable,
  bootstrapApiKey: setting('bootstrap-api-key <token>', parse.presetToken, {
    default: null,
    defaultNote: 'generated and printed on first start',
    about: 'presets the API key of the first admin: 32 or more of A-Z a-z 0-9 _',
    example: '32_or_more_characters_of_your_own',
    envOnly: true,
  }),
  bootstrapAuthtoken: setting('bootstrap-authtoken <token>', parse.presetToken, {
    default: null,
    defaultNote: 'generated and printed on first start',
    about: 'presets the first authtoken of agents: 32 or more of A-Z a-z 0-9 _',
    example: '32_or_more_characters_of_your_own',
    envOnly: true,
  }),
} as const

/** What each setting parses to; null when it is not given and has no default. */
export type Values = { readonly [F in keyof typeof table]: ValueOf<(typeof table)[F]> }

type ValueOf<S> = S extends Setting<infer T, infer Default> ? T | (Default extends null ? null : never) : never

/** All settings, in the order of the table. */
export const settings: readonly Setting<unknown>[] = Object.values(table)

/** The flag and variable that name the settings file; it is not a key of the file itself. */
export const configFlag = 'config'

/** Variables that other commands read and `serve` ignores. */
export const clientVariables: readonly string[] = [
  'POSTERN_API_KEY',
  'POSTERN_API_CA',
  'POSTERN_SERVER',
  'POSTERN_CA',
  'POSTERN_AUTHTOKEN',
  'POSTERN_AGENT_CONFIG',
  'POSTERN_OAUTH_CLIENT_SECRET',
  'POSTERN_OIDC_CLIENT_SECRET',
  'POSTERN_BACKUP_PASSPHRASE',
]

export function envName(name: string): string {
  return `POSTERN_${name.toUpperCase().replaceAll('-', '_')}`
}

export function fileKey(name: string): string {
  return name.replaceAll('-', '_')
}
