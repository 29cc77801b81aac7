/** Reads the configuration file of ngrok's agent, versions 2 and 3. */
import { dirname } from 'node:path'
import { certificatesPem, type ReadText } from '../../link/options/file-values.ts'
import { isMap, OptionReader, type Problem } from '../../link/options/option-reader.ts'
import { LONGEST_SILENCE_MS } from '../../link/wire/heartbeat.ts'
import { readInspectListen } from '../inspect/listen-address.ts'
import { parseServer, type ServerAddress } from '../server-address.ts'
import type { AgentFile } from './agent-file.ts'
import type { Environment } from './find-file.ts'
import { endpointKeys, type KeyTable, type RefusedKeys, theirPath, translate, tunnelKeys } from './ngrok-keys.ts'
import { textReader } from './text-files.ts'
import { readTunnel, type TunnelPlans } from './tunnel-options.ts'

/**
 * Settings of ngrok's own program, which visitors do not notice: each is ignored with a note, which says what takes its
 * place.
 */
const leftOut: Readonly<Record<string, string>> = {
  api_key: '`postern api` takes its key from POSTERN_API_KEY',
  connect_timeout: 'the agent waits up to 10 s for a connection',
  console_ui: 'use --log-format lines to turn the live view off',
  console_ui_color: 'the live view uses the colours of the terminal',
  crl_noverify: 'revocation lists are not checked',
  dns_resolver_ips: 'host names are resolved as on this machine',
  inspect_db_size: 'the agent keeps the latest 500 requests, in up to 32 MiB',
  log: 'log lines go to standard output',
  log_format: 'use --log-format',
  log_level: 'use --log-level',
  region: 'the region is that of your server',
  update: 'an update starts when the API asks for it',
  update_channel: 'updates come from `update.source` in a Postern configuration file',
  web_allow_hosts: 'the inspector accepts only its own address as `Host`',
}

const noProxy = 'is not supported: the agent connects to the server directly, without a proxy'
/** Settings that change traffic and are not supported: each is refused. A refusal names the line, and so does a note. */
const refusedSettings: RefusedKeys = { proxy_url: noProxy, http_proxy: noProxy, socks5_proxy: noProxy }

export const refusedInTunnels: RefusedKeys = {
  auth: 'belongs to version 1 of the file; write `basic_auth: ["user:password"]`',
  bind_tls: 'belongs to version 1 of the file; write `schemes: [https]`, `[http]` or both',
}

const inAgent = 'terminates TLS in the agent, which is not supported; use a `tls` tunnel with `terminate_at: edge`'
const refusedInEndpoints: RefusedKeys = { agent_tls_termination: inAgent }

interface NgrokContext {
  readonly readText: ReadText
  readonly env: Environment
  readonly problems: Problem[]
}

/** Whether a file has one of ngrok's versions. */
export function isNgrokFile({ version }: Readonly<Record<string, unknown>>): boolean {
  return version === 2 || version === '2' || version === 3 || version === '3'
}

/** Translates ngrok's tunnels and endpoints to ours, and then reads them as ours. The notes are settings that are ignored. */
export function readNgrokFile(values: Readonly<Record<string, unknown>>, path: string, env: Environment) {
  const problems: Problem[] = []
  const notes: Problem[] = []
  const context = { readText: textReader(dirname(path)), env, problems }
  const isThird = String(values.version) === '3'
  const top = new OptionReader(values, problems)
  top.has('version')
  const settings = isThird ? (top.map('agent') ?? new OptionReader({}, problems)) : top
  const tunnels = readTunnels(top.map('tunnels'), values.tunnels, context)
  if (isThird) readEndpoints(top, values.endpoints, tunnels, context)
  else refuseVersion(top, ['agent', 'endpoints'], 'belongs to version 3 of the file; write `version: 3`')
  const file: AgentFile = { path, ...readSettings(settings, { isThird, notes, readText: context.readText }), tunnels }
  if (isThird)
    refuseVersion(top, ['authtoken', ...Object.keys(leftOut)], 'belongs under `agent` in version 3 of the file')
  for (const reader of new Set([top, settings])) reader.finish()
  return { file, problems, notes }
}

function refuseVersion(reader: OptionReader, keys: readonly string[], fault: string): void {
  for (const key of keys) if (reader.has(key)) reader.fault(key, fault)
}

function readSettings(
  reader: OptionReader,
  { isThird, notes, readText }: { isThird: boolean; notes: Problem[]; readText: ReadText },
): Omit<AgentFile, 'path' | 'tunnels'> {
  const note = (key: string, fault: string): void => void notes.push({ path: [...reader.path, key], fault })
  for (const [key, why] of Object.entries(leftOut)) {
    if (reader.has(key) && reader.given(key) !== false) note(key, `is ignored: ${why}`)
  }
  for (const [key, why] of Object.entries(refusedSettings)) {
    if (reader.has(key) && reader.given(key) !== '' && reader.given(key) !== false) reader.fault(key, why)
  }
  const server = readServer(reader, isThird ? 'connect_url' : 'server_addr', note)
  const authtoken = reader.has('authtoken') && reader.given('authtoken') !== '' ? reader.secret('authtoken') : undefined
  return {
    isNgrok: true,
    notes: [],
    server,
    ca: readAuthorities(reader, isThird ? 'connect_cas' : 'root_cas', readText),
    // Without a Postern server in the same file, the token is for ngrok and is used only if there is no other.
    authtoken: server && authtoken,
    spareAuthtoken: server ? undefined : authtoken,
    metadata: reader.text('metadata'),
    updateChecks: reader.flag('update_check') ?? true,
    update: undefined,
    remoteManagement: reader.flag('remote_management') ?? true,
    heartbeatIntervalMs: readBeat(reader, 'heartbeat_interval', note),
    heartbeatToleranceMs: readBeat(reader, 'heartbeat_tolerance', note),
    connections: undefined,
    inspectListen: readInspectListen(reader, 'web_addr'),
  }
}

type Note = (key: string, text: string) => void

function readServer(reader: OptionReader, key: string, note: Note): ServerAddress | undefined {
  return reader.parsed(key, (text) => {
    if (text === '' || text === 'default') return undefined
    const address = text.replace(/^(?:https|tls|tcp):\/\//, '').replace(/\/$/, '')
    if (!/(?:^|\.)ngrok(?:-agent)?\.com(?::\d+)?$/i.test(address)) return parseServer(address)
    note(key, "is ignored: it is a server of ngrok's; set yours with --server, POSTERN_SERVER or `postern login`")
    return undefined
  })
}

/** `trusted` stands for the CAs that come with ngrok's agent, and `host` for those of the machine. */
function readAuthorities(reader: OptionReader, key: string, readText: ReadText): string | undefined {
  const given = reader.given(key)
  if (reader.has(key) && (given === 'trusted' || given === 'host' || given === '')) return undefined
  return reader.parsed(key, (text) => certificatesPem(readText(text)))
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Durations as Go writes them, `1m30s`. One that our servers would not accept is ignored with a note. */
function readBeat(reader: OptionReader, key: string, note: Note): number | undefined {
  const text = reader.has(key) ? reader.textOrNumber(key) : undefined
  if (text === undefined) return undefined
  const parts = [...text.matchAll(/(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h)/g)]
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    return reader.fault(key, 'must be a duration such as `10s`')
  }
  const ms = parts.reduce((sum, [, digits = '', unit = '']) => sum + Number(digits) * (units[unit] ?? 0), 0)
  if (ms >= 1000 && ms <= LONGEST_SILENCE_MS / 2) return Math.round(ms)
  note(key, `is ignored: it must be between 1s and ${LONGEST_SILENCE_MS / 2000}s`)
  return undefined
}

function readTunnels(
  reader: OptionReader | undefined,
  values: unknown,
  context: NgrokContext,
): Map<string, TunnelPlans> {
  const tunnels = new Map<string, TunnelPlans>()
  for (const name of reader?.keys() ?? []) {
    const given = isMap(values) ? values[name] : undefined
    const path = ['tunnels', name]
    if (!isMap(given)) {
      context.problems.push({ path, fault: 'must be a map' })
      continue
    }
    const bindings = takeBindings(given, path, context)
    const plans = readOne(bindings, { name, path, table: tunnelKeys, refused: refusedInTunnels }, context)
    if (plans) tunnels.set(name, plans)
  }
  return tunnels
}

/** Most entries that a list of endpoints may have. */
const MAX_ENDPOINTS = 1000

function readEndpoints(
  top: OptionReader,
  values: unknown,
  tunnels: Map<string, TunnelPlans>,
  context: NgrokContext,
): void {
  if (!top.has('endpoints')) return
  if (!Array.isArray(values) || values.length > MAX_ENDPOINTS) {
    top.fault('endpoints', 'must be a list of endpoints')
    return
  }
  for (const [i, given] of values.entries()) {
    const path = ['endpoints', String(i)]
    if (!isMap(given)) {
      context.problems.push({ path, fault: 'must be a map' })
      continue
    }
    const { name: _, ...rest } = given
    const name = new OptionReader(given, context.problems, path).textOrNumber('name') || `endpoint-${i + 1}`
    if (tunnels.has(name))
      context.problems.push({ path: [...path, 'name'], fault: 'is used twice; every name must be different' })
    const known = takeBindings(rest, path, context)
    const plans = readOne(known, { name, path, table: endpointKeys, refused: refusedInEndpoints }, context)
    if (plans) tunnels.set(name, plans)
  }
}

/** Removes `bindings`, which may only be `public`. */
function takeBindings(
  { bindings, ...rest }: Readonly<Record<string, unknown>>,
  path: readonly string[],
  { problems }: NgrokContext,
): Readonly<Record<string, unknown>> {
  const all = bindings === undefined || bindings === null ? [] : [bindings].flat()
  if (!all.every((each) => each === 'public')) {
    problems.push({ path: [...path, 'bindings'], fault: 'is not supported: every endpoint here is `public`' })
  }
  return rest
}

interface NgrokTunnel {
  readonly name: string
  readonly path: readonly string[]
  readonly table: KeyTable
  readonly refused: RefusedKeys
}

/** Reads a tunnel with the keys of `table`; problems are noted under its path. */
export function readOne(
  given: Readonly<Record<string, unknown>>,
  { name, path, table, refused }: NgrokTunnel,
  { readText, env, problems }: NgrokContext,
): TunnelPlans | undefined {
  const { values, problems: unknown } = translate(given, table, refused)
  const found: Problem[] = [...unknown]
  if (!/^[\w.-]{1,64}$/.test(name)) {
    found.push({ path: [], fault: 'must be named with letters, digits, `_`, `-` and `.`, at most 64 of them' })
  }
  adapt(values, found)
  const ours: Problem[] = []
  const plans = readTunnel(new OptionReader(values, ours), { name, readText, env })
  found.push(...ours.map((problem) => ({ ...problem, path: theirPath(problem.path, table) })))
  problems.push(...found.map((problem) => ({ ...problem, path: [...path, ...problem.path] })))
  return plans
}

/** Adjusts values that mean something else in ngrok's file. */
function adapt(values: Record<string, unknown>, problems: Problem[]): void {
  const { url, crt, terminate_at: at, ip_restriction: restriction } = values
  if (typeof url === 'string') Object.assign(values, addressOf(url, values))
  // In ngrok, a list of denied addresses allows all others.
  if (isMap(restriction) && restriction.allow === undefined) {
    values.ip_restriction = { ...restriction, allow: ['0.0.0.0/0', '::/0'] }
  }
  if (at !== 'agent' && (crt === undefined || at !== undefined)) return
  problems.push({ path: [at === 'agent' ? 'terminate_at' : 'crt'], fault: inAgent })
  for (const key of ['terminate_at', 'crt', 'key']) delete values[key]
}

/** A URL may be just a host name, or just `tcp://`, which asks for any port. It determines the protocol of visitors. */
function addressOf(url: string, { proto }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const [, scheme = '', rest = ''] = /^(?:([a-z]+):\/\/)?(.*)$/i.exec(url) ?? []
  const kind = scheme.toLowerCase() === 'https' ? 'http' : scheme.toLowerCase()
  const spoken = proto ?? (kind === 'http' || kind === 'tcp' || kind === 'tls' ? kind : undefined)
  const shared = spoken === undefined ? {} : { proto: spoken }
  if (rest === '') return { ...shared, url: undefined, ...(scheme === 'http' && { schemes: ['http'] }) }
  return scheme === '' ? { ...shared, url: undefined, domain: rest } : shared
}
