/** Where each listening socket belongs, as settings have it. */
import type { Settings } from '../config/read.ts'
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
    default:
      return { host: settings.tcpListen, port: Number(name.slice('tcp '.length)) }
  }
}
