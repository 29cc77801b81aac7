/** What some settings mean to the data plane, worked out when they are read. */
import { compileIpRules } from '../lib/net/ip-rules.ts'
import { ownListeners } from '../lib/net/own-listeners.ts'
import { namesForAgents } from './agent-names.ts'
import type { Settings } from './read.ts'

/** What a visitor may send, and how long it may take. */
export function requestLimits({ maxHeaderBytes, maxHeaders, headerTimeoutMs, idleTimeoutMs }: Settings) {
  return { headBytes: maxHeaderBytes, headers: maxHeaders, headMs: headerTimeoutMs, idleMs: idleTimeoutMs }
}

/** What the door of agents shows of itself, and under which names. */
export function agentTls(settings: Settings) {
  const { tlsMinVersion, agentCertificate } = settings
  const names = namesForAgents(settings)
  return { names, isPublic: agentCertificate === 'public', tlsMinVersion: `TLSv${tlsMinVersion}` } as const
}

/** Which addresses modules may ask although they are not public (D53). */
export function allowedBy({ outboundAllow }: Settings): (address: string) => boolean {
  return compileIpRules(outboundAllow.map((network) => ({ action: 'allow', network })))
}

/** Whether this server listens at an address: modules never ask there (D53). */
export function ownPorts(settings: Settings): (address: string, port: number) => boolean {
  const { apiListen, metricsListen, agentListen, sshListen, httpsListen, httpListen, clusterListen, tcpPorts } =
    settings
  const listeners = [apiListen, metricsListen, agentListen, sshListen, httpsListen, httpListen, clusterListen]
  return ownListeners({ ports: listeners.flatMap((each) => each?.port ?? []), range: tcpPorts })
}
