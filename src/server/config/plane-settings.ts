/** Settings in the form that the data plane uses, computed once when they are read. */
import { type OutboundTarget, outboundRules } from '../../lib/net/outbound-rules.ts'
import { ownListeners } from '../../lib/net/own-listeners.ts'
import { namesForAgents } from './own-names.ts'
import type { Settings } from './read-settings.ts'
import { type ListenerName, listenerNames } from './systemd-sockets.ts'

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

/** Which addresses modules may send requests to (D53). */
export function outboundBy(settings: Settings): (target: OutboundTarget) => boolean {
  const portsOf = (names: readonly ListenerName[]) =>
    names.flatMap((name) => settings[`${name}Listen` as const]?.port ?? [])
  const own = {
    control: portsOf(listenerNames.filter((name) => !forVisitors.includes(name))),
    visitors: portsOf(forVisitors),
    range: settings.tcpPorts,
  }
  return outboundRules(settings.outboundAllow, ownListeners(own))
}

const forVisitors: readonly ListenerName[] = ['https', 'http']
