/** Turns a forward and the command of its connection into a bind, or a request for labels. */
import { Secret } from '../../lib/secrets/secret.ts'
import type { Proto } from '../../link/options/described-tunnel.ts'
import { refusals } from '../../model/agent-errors.ts'
import { BindRefusal } from '../tunnel/interfaces.ts'
import type { Online } from '../tunnel/online-tunnels.ts'
import type { SshTunnelCommand } from './forward-command.ts'

/** Where a client wants the server to listen, as it spelled it. */
export interface ForwardAddress {
  readonly address: string
  readonly port: number
}

type Plan = { readonly bind: Parameters<Online['bind']>[1] } | { readonly labels: Parameters<Online['startLabels']>[1] }

/** D49: addresses in a forward that ask for no name; `ssh` itself sends `localhost` by default. */
const noNames: ReadonlySet<string> = new Set(['', 'localhost', '127.0.0.1', '::1', '0.0.0.0', '::', '*'])

export function planOf(at: ForwardAddress, command: SshTunnelCommand): Plan | BindRefusal {
  const { kind, metadata, forwardsProto, labels, protos } = command
  // SSH does not tell the server where the client forwards to.
  const served = { forwardsTo: '', forwardsProto, metadata }
  if (labels) return { labels: { ...served, labels } }
  const [asked = 'https'] = protos
  const proto = kind === 'http' ? schemeOf(at, asked, command) : asked
  if (proto instanceof BindRefusal) return proto
  const name = kind === 'tcp' ? tcpAddress(at, command) : nameOf(at, command)
  if (name instanceof BindRefusal) return name
  const { name: called, description } = command
  const opts = { ...command.opts, ...name }
  const asking = { id: '', proto, opts, token: new Secret(''), bindings: [], poolingEnabled: false }
  return { bind: { ...served, ...asking, name: called, description } }
}

/** The port that a client is told for a forward of port 0, except for TCP, which has a real port. */
export function usualPort(proto: string): number {
  return proto === 'http' ? 80 : 443
}

function schemeOf({ port }: ForwardAddress, asked: Proto, { isSchemeGiven }: SshTunnelCommand): Proto | BindRefusal {
  if (port === 0) return asked
  const ofPort = port === 80 ? 'http' : port === 443 ? 'https' : undefined
  if (ofPort === undefined) return refusals.badPort('http', port, '80 for http or 443 for https')
  if (isSchemeGiven && ofPort !== asked) return refusals.badPort(asked, port, String(usualPort(asked)))
  return ofPort
}

function nameOf(
  { address, port }: ForwardAddress,
  { kind, namedBy }: SshTunnelCommand,
): Record<string, string> | BindRefusal {
  if (kind === 'tls' && port !== 0 && port !== 443) return refusals.badPort('tls', port, '443')
  if (noNames.has(address)) return {}
  return namedBy === undefined ? { Domain: address } : namedTwice(namedBy)
}

/** D49: any port of the server's range may be asked for, with a name or without. */
function tcpAddress(
  { address, port }: ForwardAddress,
  { namedBy }: SshTunnelCommand,
): Record<string, string> | BindRefusal {
  const name = noNames.has(address) ? '' : address
  if (name === '' && port === 0) return {}
  if (namedBy !== undefined) return namedTwice(namedBy)
  if (port === 0) return refusals.portMissing(name)
  return { Addr: `${name}:${port}` }
}

/** The vendor has one number for each flag that may repeat the name in `-R`. */
const refusalsByFlag: Readonly<Record<string, (flag: string) => BindRefusal>> = {
  '--hostname': refusals.hostnameTwice,
  '--subdomain': refusals.subdomainTwice,
  '--remote-addr': refusals.remoteAddrTwice,
  '--url': refusals.urlTwice,
}

function namedTwice(flag: string): BindRefusal {
  return (refusalsByFlag[flag] ?? refusals.domainTwice)(flag)
}
