/**
 * The agent as a library: a public URL in a few lines of your program.
 *
 * @example
 * import { forward } from 'postern'
 *
 * const tunnel = await forward({ addr: 3000, server: 'tunnels.example.com:7443', authtoken: '…' })
 * console.log(tunnel.url)
 * await tunnel.close()
 */
// Lets projects without a `types` setting find the types of Node, which our declarations use.
/// <reference types="node" preserve="true" />
import type { Duplex } from 'node:stream'
import { packageVersion } from '../lib/files/package-file.ts'
import { Secret } from '../lib/secrets/secret.ts'
import { certificatesPem } from '../link/options/file-values.ts'
import { OptionReader, type Problem } from '../link/options/option-reader.ts'
import { Agent } from './agent.ts'
import { AgentFault } from './agent-fault.ts'
import { ConfigError, describeProblem } from './config/config-error.ts'
import { textReader } from './config/text-files.ts'
import { readTunnel, type TunnelContext, type TunnelOptions, type TunnelPlans } from './config/tunnel-options.ts'
import type { AgentEvent } from './events.ts'
import type { Visitor } from './forward.ts'
import { DEFAULT_SERVER, parseServer } from './server-address.ts'
import { parseConnections } from './session-connections.ts'
import type { AgentTunnel } from './tunnel.ts'

export type { AgentFaultCode } from './agent-fault.ts'
export type { HeaderRules, LoginOptions, TunnelOptions } from './config/tunnel-options.ts'
export type { Visitor } from './forward.ts'
export { AgentFault, ConfigError }

/** The server to connect to, and how. */
export interface ConnectOptions {
  /** `host:port`; `POSTERN_SERVER`, else `localhost:7443`, when left out. */
  readonly server?: string | undefined
  /** `POSTERN_AUTHTOKEN` when left out. */
  readonly authtoken?: string | undefined
  /** CA of the server's certificate, a file or PEM; `POSTERN_CA`, else the CAs of the machine, when left out. */
  readonly ca?: string | undefined
  /** Shown with the session in the API. */
  readonly session_metadata?: string | undefined
  /**
   * How many connections to have at most, from 1 to 16: one to each worker of the server, and to a second of its nodes if it
   * has one. `'auto'`, as many as are of use, when left out.
   */
  readonly connections?: number | 'auto' | undefined
  /** Waits for a server that cannot be reached, rather than rejecting. A refusal by the server always rejects. */
  readonly wait?: boolean | undefined
  /** Called with later events; lost tunnels come back by themselves. */
  readonly onEvent?: ((event: ConnectionEvent) => void) | undefined
}

export type ConnectionEvent =
  | { readonly type: 'online'; readonly session: string; readonly region: string }
  | { readonly type: 'offline'; readonly reason: string; readonly retryMs: number }
  /** The server refused to give a tunnel its address again; the agent keeps asking for it. */
  | { readonly type: 'refused'; readonly url: string; readonly reason: string }
  /** The server ended a tunnel for good. */
  | { readonly type: 'stopped'; readonly url: string; readonly reason: string }

/** A tunnel, with its twin when a web service has both schemes. */
export interface OpenTunnel {
  /** Its public URL; `''` for a tunnel with labels. */
  readonly url: string
  /** All of its URLs: two when both `http` and `https` were asked for. */
  readonly urls: readonly string[]
  /** The id that the API shows. */
  readonly id: string
  /** Closes the tunnel and gives up its address. */
  close(): Promise<void>
}

export interface Connection {
  /** Opens a tunnel to a service. */
  forward(options: TunnelOptions & { readonly addr: string | number }): Promise<OpenTunnel>
  /** Opens a tunnel whose connections are served by this process. */
  listen(handler: Handler, options?: Omit<TunnelOptions, 'addr'>): Promise<OpenTunnel>
  /** Closes all tunnels and the session. */
  close(): Promise<void>
}

/** Serves connections: a function, or a server of `node:net` or `node:http` that need not listen anywhere. */
export type Handler =
  | ((connection: Duplex, visitor: Visitor) => void)
  | { emit(event: 'connection', connection: Duplex): unknown }

export type ForwardOptions = ConnectOptions & TunnelOptions & { readonly addr: string | number }
export type ListenOptions = ConnectOptions & Omit<TunnelOptions, 'addr'>

/** Gives a service a public address. Rejects with `AgentFault` or `ConfigError`. */
export async function forward(options: ForwardOptions): Promise<OpenTunnel> {
  const { connecting, tunnel } = splitOptions(options)
  return openAlone(connecting, plansOf(tunnel))
}

/**
 * Gives a handler inside this process a public address.
 *
 * @example
 * const tunnel = await listen(http.createServer((request, response) => response.end('hello')))
 */
export async function listen(handler: Handler, options: ListenOptions = {}): Promise<OpenTunnel> {
  const { connecting, tunnel } = splitOptions(options)
  return openAlone(connecting, plansOf(tunnel, handler))
}

/** One session for several tunnels. */
export async function connect(options: ConnectOptions = {}): Promise<Connection> {
  const agent = await start(options)
  return {
    forward: async (tunnel) => open(agent, plansOf({ ...tunnel })),
    listen: async (handler, tunnel = {}) => open(agent, plansOf({ ...tunnel }, handler)),
    close: () => agent.close(),
  }
}

/** Opens a tunnel with a session of its own, which ends with it. */
async function openAlone(options: ConnectOptions, plans: TunnelPlans): Promise<OpenTunnel> {
  const agent = await start(options)
  try {
    return { ...(await open(agent, plans)), close: () => agent.close() }
  } catch (error) {
    await agent.close()
    throw error
  }
}

async function start({ wait = false, session_metadata = '', onEvent, ...given }: ConnectOptions): Promise<Agent> {
  const { env } = process
  const authtoken = given.authtoken || env.POSTERN_AUTHTOKEN
  const ca = given.ca || env.POSTERN_CA
  if (!authtoken) throw new ConfigError(['`authtoken` is missing: give it, or set POSTERN_AUTHTOKEN'])
  const agent = new Agent({
    server: parseOption('server', () => parseServer(given.server || env.POSTERN_SERVER || DEFAULT_SERVER)),
    ca: ca ? parseOption('ca', () => certificatesPem(readText(ca))) : undefined,
    authtoken: new Secret(authtoken),
    connections: parseOption('connections', () => parseConnections(String(given.connections ?? 'auto'))),
    metadata: session_metadata,
    version: packageVersion(),
    clientType: 'postern-library',
    onEvent(event) {
      const shownEvent = connectionEvent(event)
      if (shownEvent) onEvent?.(shownEvent)
    },
  })
  try {
    await agent.start({ patient: wait })
    return agent
  } catch (error) {
    await agent.close()
    throw error
  }
}

/** Throws `ConfigError`. */
function plansOf(options: Readonly<Record<string, unknown>>, handler?: Handler): TunnelPlans {
  const problems: Problem[] = []
  const context = { name: 'library', readText, env: process.env, ...(handler && { accept: acceptor(handler) }) }
  const plans = readTunnel(new OptionReader(options, problems), context)
  if (plans && problems.length === 0) return plans
  throw new ConfigError(problems.map((problem) => describeProblem(problem)))
}

async function open(agent: Agent, plans: TunnelPlans): Promise<OpenTunnel> {
  const [plan, twin] = plans
  const tunnels: AgentTunnel[] = [await agent.open(plan)]
  const close = async (): Promise<void> => {
    await Promise.all(tunnels.map((each) => agent.closeTunnel(each)))
  }
  try {
    if (twin) tunnels.push(await agent.open(twin, { twin: tunnels[0] }))
  } catch (error) {
    await close()
    throw error
  }
  const urls = tunnels.map(({ url }) => url).filter((url) => url !== '')
  return { url: urls[0] ?? '', urls, id: tunnels[0]?.tunnelId ?? '', close }
}

function acceptor(handler: Handler): NonNullable<TunnelContext['accept']> {
  return typeof handler === 'function' ? handler : (connection) => void handler.emit('connection', connection)
}

/** Separates the options of the session from those of the tunnel. */
function splitOptions(options: ForwardOptions | ListenOptions) {
  const { server, authtoken, ca, session_metadata, connections, wait, onEvent, ...tunnel } = options
  return { connecting: { server, authtoken, ca, session_metadata, connections, wait, onEvent }, tunnel }
}

function parseOption<T>(name: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new ConfigError([`\`${name}\` ${error instanceof Error ? error.message : String(error)}`])
  }
}

/** The event as callers of the library get it; the others are for displays. */
function connectionEvent(event: AgentEvent): ConnectionEvent | undefined {
  if (event.type === 'online') return { type: 'online', session: event.session, region: event.region }
  if (event.type === 'offline') return { type: 'offline', reason: event.fault.message, retryMs: event.retryMs }
  if (event.type === 'tunnel-refused') return { type: 'refused', url: event.tunnel.url, reason: event.fault.message }
  if (event.type === 'tunnel-stopped') return { type: 'stopped', url: event.tunnel.url, reason: event.message }
  return undefined
}

/** Paths are relative to the working directory. */
const readText = textReader('.')
