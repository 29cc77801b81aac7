/** Settings in the form that the data plane uses, computed once when they are read. */
import { compileIpRules } from '../../lib/net/ip-rules.ts'
import { ownListeners } from '../../lib/net/own-listeners.ts'
import { namesForAgents } from './own-names.ts'
import type { Settings } from './read-settings.ts'
import { listenerNames } from './systemd-sockets.ts'

/** Limits on the size and time of a visitor's request. */
export function requestLimits({ maxHeaderBytes, maxHeaders, headerTimeoutMs, idleTimeoutMs }: Settings) {
  return { headBytes: maxHeaderBytes, headers: maxHeaders, headMs: headerTimeoutMs, idleMs: idleTimeoutMs }
}

/** The TLS settings of the listener for agents. */
export function agentTls(settings: Settings) {
  const { tlsMinVersion, agentCertificate } = settings
  const names = namesForAgents(settings)
  return { names, isPublic: agentCertificate === 'public', tlsMinVersion: `TLSv${tlsMinVersion}` } as const
}

/** Which addresses modules may send requests to although they are not public (D53). */
export function allowedBy({ outboundAllow }: Settings): (address: string) => boolean {
  return compileIpRules(outboundAllow.map((network) => ({ action: 'allow', network })))
}

/** Whether this server listens at an address; modules never send requests there (D53). */
export function ownPorts(settings: Settings): (address: string, port: number) => boolean {
  const ports = listenerNames.flatMap((name) => settings[`${name}Listen` as const]?.port ?? [])
  return ownListeners({ ports, range: settings.tcpPorts })
}
