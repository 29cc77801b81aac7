/** What some settings mean to the data plane, worked out when they are read. */
import { compileIpRules } from '../lib/net/ip-rules.ts'
import { ownListeners } from '../lib/net/own-listeners.ts'
import type { Authority } from '../lib/x509/certificate-authority.ts'
import { namesForAgents } from './agent-names.ts'
import type { Settings } from './read.ts'

/** What a visitor may send, and how long it may take. */
export function requestLimits({ maxHeaderBytes, maxHeaders, headerTimeoutMs, idleTimeoutMs }: Settings) {
  return { headBytes: maxHeaderBytes, headers: maxHeaders, headMs: headerTimeoutMs, idleMs: idleTimeoutMs }
}

export type AgentTlsSettings = Pick<
  Settings,
  'domain' | 'agentNames' | 'agentAddress' | 'tlsMinVersion' | 'agentCertificate'
>

/** Certificates by name that are not of our own authority. */
export interface NamedCertificates {
  findNamed(name: string): { readonly cert: string; readonly key: string } | undefined
}

/** What the door of agents shows of itself, under every name by which they may reach it. */
export function agentTls(settings: AgentTlsSettings, authority: Authority, named: NamedCertificates) {
  const { domain, agentNames, agentAddress, tlsMinVersion, agentCertificate } = settings
  const more = agentAddress ? [...agentNames, agentAddress.host.toLowerCase()] : agentNames
  const certificate = authority.issue(namesForAgents(domain, more))
  const certificateFor = agentCertificate === 'public' ? (name: string) => named.findNamed(name) : undefined
  return { certificate, certificateFor, tlsMinVersion: `TLSv${tlsMinVersion}` } as const
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
