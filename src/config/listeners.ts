/**
 * What the server listens on, opened before anything slow is loaded. Agents that find nobody may wait for minutes before
 * they ask again (D50); one that is let wait for a moment is served.
 */
import { fstatSync } from 'node:fs'
import type { ServerOpts } from 'node:net'
import type { Caller, Descriptors } from '../lib/files/descriptors.ts'
import { EarlyListener, type EarlyPlace } from '../lib/net/early-listener.ts'
import { addressText, type ListenOn } from '../lib/net/listen-on.ts'
import { agentSockets, httpSockets, visitorSockets } from '../lib/net/socket-options.ts'
import type { HandedSocket, ListenerName } from './handed-sockets.ts'
import type { Settings } from './read.ts'
import { SettingsError } from './settings-error.ts'

export interface Listeners extends Readonly<Record<ListenerName, ListenOn>> {
  /** Ports of TCP edges and endpoints that were handed in. */
  readonly tcp: ReadonlyMap<number, EarlyListener>
  /** What a service manager handed in, each with its name. */
  readonly handed: readonly string[]
  /** Closes those that nobody took over. */
  close(): void
}

/** What a service manager handed in. */
export interface HandedListeners {
  readonly named: ReadonlyMap<ListenerName, EarlyListener>
  readonly tcp: ReadonlyMap<number, EarlyListener>
  close(): void
}

interface Kind {
  readonly sockets: ServerOpts
  readonly caller: Caller
}

const kinds: Readonly<Record<ListenerName | 'tcp', Kind>> = {
  api: { sockets: httpSockets, caller: 'api' },
  metrics: { sockets: httpSockets, caller: 'metrics' },
  agent: { sockets: agentSockets, caller: 'agents' },
  ssh: { sockets: agentSockets, caller: 'agents' },
  https: { sockets: visitorSockets, caller: 'visitors' },
  http: { sockets: visitorSockets, caller: 'visitors' },
  tcp: { sockets: visitorSockets, caller: 'visitors' },
}

/** Listens on what was handed in; throws `SettingsError` for what is no TCP socket that can listen. */
export async function openHanded(sockets: readonly HandedSocket[], descriptors: Descriptors): Promise<HandedListeners> {
  const named = new Map<ListenerName, EarlyListener>()
  const tcp = new Map<number, EarlyListener>()
  const problems: string[] = []
  const close = (): void => closeEarly([...named.values(), ...tcp.values()])
  for (const { name, fd } of sockets) {
    const listener = await openSocket({ name, fd }, descriptors)
    if (!(listener instanceof EarlyListener)) problems.push(listener)
    else if (name !== 'tcp') named.set(name, listener)
    else if (tcp.has(listener.address.port)) {
      listener.close()
      problems.push(`two sockets were handed in for port ${listener.address.port}; one on \`[::]\` takes IPv4 too`)
    } else tcp.set(listener.address.port, listener)
  }
  if (problems.length === 0) return { named, tcp, close }
  close()
  throw new SettingsError(problems)
}

/** Where the listeners of these names are, as settings have it: what was handed in wins over what is written. */
export function handedAddresses({ named }: HandedListeners): ReadonlyMap<string, string> {
  return new Map([...named].map(([name, { address }]) => [`${name}-listen`, addressText(address)]))
}

/** Opens the doors of agents and visitors, unless they were handed in. One that cannot be had is tried again later. */
export async function openListeners(
  settings: Settings,
  { named, tcp }: HandedListeners,
  descriptors: Descriptors,
): Promise<Listeners> {
  const { from, to } = settings.tcpPorts
  const beyond = [...tcp.keys()].filter((port) => port < from || port > to)
  if (beyond.length > 0) {
    throw new SettingsError(beyond.map((port) => `port ${port}, which was handed in, is not among \`tcp-ports\``))
  }
  const early = async (name: ListenerName, address: EarlyPlace & ListenOn): Promise<ListenOn> =>
    // Why it cannot be had is told by whoever needs it: a database in use, say, comes first and tells more.
    named.get(name) ?? open(name, address, descriptors).catch(() => address)
  const [agent, ssh, https, http] = await Promise.all([
    early('agent', settings.agentListen),
    early('ssh', settings.sshListen),
    early('https', settings.httpsListen),
    early('http', settings.httpListen),
  ])
  // Whoever asks these whether the server is ready would have to wait for the answer.
  const api = named.get('api') ?? settings.apiListen
  const metrics = named.get('metrics') ?? settings.metricsListen
  return {
    ...{ api, metrics, agent, ssh, https, http, tcp },
    handed: [...named.keys(), ...[...tcp.keys()].map((port) => `tcp ${port}`)],
    close: () => closeEarly([api, metrics, agent, ssh, https, http, ...tcp.values()]),
  }
}

/** Opens nothing yet. */
export function plainListeners(settings: Settings): Listeners {
  return {
    api: settings.apiListen,
    metrics: settings.metricsListen,
    agent: settings.agentListen,
    ssh: settings.sshListen,
    https: settings.httpsListen,
    http: settings.httpListen,
    tcp: new Map(),
    handed: [],
    close() {},
  }
}

function closeEarly(listeners: readonly ListenOn[]): void {
  for (const each of listeners) if (each instanceof EarlyListener) each.close()
}

/** The listener, or what is wrong with the socket. */
async function openSocket({ name, fd }: HandedSocket, descriptors: Descriptors): Promise<EarlyListener | string> {
  const what = `the socket \`${name}\` (descriptor ${fd})`
  try {
    // Asked first: Node would close any descriptor that it cannot use, one of its own too.
    if (!fstatSync(fd).isSocket()) return `${what} is not a socket`
    return await open(name, { fd }, descriptors)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    return code === 'EBADF' ? `${what} is not open` : `${what} is not a TCP socket that listens (${code})`
  }
}

function open(name: ListenerName | 'tcp', place: EarlyPlace, descriptors: Descriptors): Promise<EarlyListener> {
  const { sockets, caller } = kinds[name]
  return EarlyListener.open(place, { sockets, admits: (socket) => descriptors.admits(socket, caller) })
}
