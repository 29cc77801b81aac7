/** Opens early those listeners whose port the system chooses, since other nodes are told these ports. */
import type { Descriptors } from '../../lib/files/descriptors.ts'
import { EarlyListener } from '../../lib/net/early-listener.ts'
import type { ListenOn } from '../../lib/net/listen-on.ts'
import { type Listeners, openEarly } from './listeners.ts'
import type { Settings } from './read-settings.ts'
import type { ListenerName } from './systemd-sockets.ts'

interface Opening {
  readonly descriptors: Descriptors
  /** Other processes of this server listen on the same port. */
  readonly isShared: boolean
}

/** Rejects with the error of the system when one of them cannot be opened. */
export async function withKnownPorts(
  { agent, cluster }: Pick<Listeners, 'agent' | 'cluster'>,
  { clusterListen }: Pick<Settings, 'clusterListen'>,
  { descriptors, isShared }: Opening,
) {
  const opened: EarlyListener[] = []
  // Those that were opened here and are still unused.
  const close = (): void => {
    for (const each of opened) each.close()
  }
  const knownPort = async (name: ListenerName, on: ListenOn): Promise<ListenOn> => {
    if (on instanceof EarlyListener || on.port !== 0) return on
    const early = await openEarly(name, { host: on.host, port: 0, reusePort: isShared }, descriptors)
    opened.push(early)
    return early
  }
  // A node on its own announces no ports.
  if (!clusterListen || !cluster) return { listeners: { agent, cluster }, ports: { agent: 0, cluster: 0 }, close }
  try {
    const listeners = { agent: await knownPort('agent', agent), cluster: await knownPort('cluster', cluster) }
    return { listeners, ports: { agent: portOf(listeners.agent), cluster: portOf(listeners.cluster) }, close }
  } catch (error) {
    close()
    throw error
  }
}

function portOf(on: ListenOn): number {
  return on instanceof EarlyListener ? on.address.port : on.port
}
