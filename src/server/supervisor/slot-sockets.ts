/** The address of each listening socket, from the settings. */
import type { Settings } from '../config/read-settings.ts'
import type { SocketName, SocketPlace } from './held-sockets.ts'

export function placeIn(settings: Settings, name: SocketName): SocketPlace {
  switch (name) {
    case 'api':
      return settings.apiListen
    case 'metrics':
      return settings.metricsListen
    case 'agent':
      return settings.agentListen
    case 'ssh':
      return settings.sshListen
    case 'https':
      return settings.httpsListen
    case 'http':
      return settings.httpListen
    case 'cluster':
      return clusterPlace(settings)
    default:
      return { host: settings.tcpListen, port: Number(name.slice('tcp '.length)) }
  }
}

/** The address for other nodes, which only a node in a cluster opens. */
function clusterPlace({ clusterListen }: Settings): SocketPlace {
  if (!clusterListen) throw new Error('a node on its own has no socket for other nodes')
  return clusterListen
}
