/** What the server listens on, opened before anything slow is loaded. */
import { fstatSync } from 'node:fs'
import type { AddressInfo, ServerOpts } from 'node:net'
import { errorCode } from '../../lib/error-code.ts'
import type { Caller, Descriptors } from '../../lib/files/descriptors.ts'
import { type EarlyAddress, EarlyListener, type EarlyOptions } from '../../lib/net/early-listener.ts'
import { addressText, type ListenOn } from '../../lib/net/listen-on.ts'
import { agentSockets, httpSockets, visitorSockets } from '../../lib/net/socket-options.ts'
import type { Settings } from './read-settings.ts'
import { SettingsError } from './settings-error.ts'
import type { HandedSocket, ListenerName } from './systemd-sockets.ts'

/**
 * An agent whose connection is refused may wait for minutes before it tries again (D50); one that is kept waiting for a
 * moment is served.
 */
export interface Listeners extends Readonly<Record<Exclude<ListenerName, 'cluster'>, ListenOn>> {
  /** Where other nodes connect; undefined for a node on its own. */
  readonly cluster: ListenOn | undefined
  /** Ports of TCP edges and endpoints that were handed in. */
  readonly tcp: ReadonlyMap<number, EarlyListener>
  /** What a service manager handed in, each with its name. */
  readonly handed: readonly string[]
  /** Closes those that are still unused. */
  close(): void
}

/** What a service manager handed in, as `Socket`. */
export interface HandedOpen<Socket> {
  readonly named: ReadonlyMap<ListenerName, Socket>
  readonly tcp: ReadonlyMap<number, Socket>
  close(): void
}

export type HandedListeners = HandedOpen<EarlyListener>

interface OpenSocket {
  readonly address: AddressInfo
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
  // Other nodes relay to agents here, and their links check by themselves that the peer is alive.
  cluster: { sockets: agentSockets, caller: 'agents' },
  tcp: { sockets: visitorSockets, caller: 'visitors' },
}

/** Listens on what was handed in; throws `SettingsError` for anything but a listening TCP socket. */
export function openHanded(sockets: readonly HandedSocket[], descriptors: Descriptors): Promise<HandedListeners> {
  return adoptHanded(sockets, ({ name, fd }) => openEarly(name, { fd }, descriptors))
}

/** Opens what was handed in with `open`, which rejects with the error of the system; throws `SettingsError`. */
export async function adoptHanded<Socket extends OpenSocket>(
  sockets: readonly HandedSocket[],
  open: (socket: HandedSocket) => Promise<Socket>,
): Promise<HandedOpen<Socket>> {
  const named = new Map<ListenerName, Socket>()
  const tcp = new Map<number, Socket>()
  const problems: string[] = []
  const close = (): void => {
    for (const each of [...named.values(), ...tcp.values()]) each.close()
  }
  for (const handed of sockets) {
    const opened = await openSocket(handed, open)
    if (typeof opened === 'string') problems.push(opened)
    else if (handed.name !== 'tcp') named.set(handed.name, opened)
    else if (tcp.has(opened.address.port)) {
      opened.close()
      problems.push(`two sockets were passed for port ${opened.address.port}; one on \`[::]\` accepts IPv4 too`)
    } else tcp.set(opened.address.port, opened)
  }
  if (problems.length === 0) return { named, tcp, close }
  close()
  throw new SettingsError(problems)
}

/** The addresses of handed-in listeners by setting; they win over the configured ones. */
export function handedAddresses({ named }: Pick<HandedOpen<OpenSocket>, 'named'>): ReadonlyMap<string, string> {
  return new Map([...named].map(([name, { address }]) => [`${name}-listen`, addressText(address)]))
}

/** Opens the listeners for agents and visitors, unless they were handed in. One that cannot be opened is tried again later. */
export async function openListeners(
  settings: Settings,
  { named, tcp }: HandedListeners,
  descriptors: Descriptors,
): Promise<Listeners> {
  checkHandedPorts(settings, tcp.keys())
  const early = async (name: ListenerName, address: EarlyAddress & ListenOn): Promise<ListenOn> =>
    // The failure is reported when the listener is needed: another one, such as a database in use, may come first and say more.
    named.get(name) ?? openEarly(name, address, descriptors).catch(() => address)
  const { clusterListen } = settings
  const [agent, ssh, https, http, cluster] = await Promise.all([
    early('agent', settings.agentListen),
    early('ssh', settings.sshListen),
    early('https', settings.httpsListen),
    early('http', settings.httpListen),
    clusterListen ? early('cluster', clusterListen) : undefined,
  ])
  // Not opened early: whoever asks these two whether the server is ready would wait instead of being refused.
  const api = named.get('api') ?? settings.apiListen
  const metrics = named.get('metrics') ?? settings.metricsListen
  return {
    ...{ api, metrics, agent, ssh, https, http, cluster, tcp },
    handed: handedNames({ named, tcp }),
    close: () => closeEarly([api, metrics, agent, ssh, https, http, cluster, ...tcp.values()]),
  }
}

/** Throws `SettingsError` for ports that no edge can have. */
export function checkHandedPorts({ tcpPorts: { from, to } }: Settings, ports: Iterable<number>): void {
  const beyond = [...ports].filter((port) => port < from || port > to)
  if (beyond.length === 0) return
  throw new SettingsError(beyond.map((port) => `a socket was passed for port ${port}, which is not in \`tcp-ports\``))
}

/** What was handed in, as an operator reads it. */
export function handedNames({ named, tcp }: Pick<HandedOpen<unknown>, 'named' | 'tcp'>): readonly string[] {
  return [...named.keys(), ...[...tcp.keys()].map((port) => `tcp ${port}`)]
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
    cluster: settings.clusterListen ?? undefined,
    tcp: new Map(),
    handed: [],
    close() {},
  }
}

function closeEarly(listeners: readonly (ListenOn | undefined)[]): void {
  for (const each of listeners) if (each instanceof EarlyListener) each.close()
}

/** The socket, or what is wrong with it. */
async function openSocket<Socket>(
  { name, fd }: HandedSocket,
  open: (socket: HandedSocket) => Promise<Socket>,
): Promise<Socket | string> {
  const what = `the socket \`${name}\` (descriptor ${fd})`
  try {
    // Checked first: Node would close any descriptor that it cannot use, even one of its own.
    if (!fstatSync(fd).isSocket()) return `${what} is not a socket`
    return await open({ name, fd })
  } catch (error) {
    const code = errorCode(error) ?? String(error)
    return code === 'EBADF' ? `${what} is not open` : `${what} is not a TCP socket that listens (${code})`
  }
}

/** Listens there, with the socket options and limits of a listener of this name. */
export function openEarly(
  name: ListenerName | 'tcp',
  listenAt: EarlyAddress,
  descriptors: Descriptors,
): Promise<EarlyListener> {
  return EarlyListener.open(listenAt, earlyOptions(name, descriptors))
}

export function earlyOptions(name: ListenerName | 'tcp', descriptors: Descriptors): EarlyOptions {
  const { sockets, caller } = kinds[name]
  return { sockets, admits: (socket) => descriptors.admits(socket, caller) }
}
