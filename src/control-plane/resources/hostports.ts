/** The hostports of an edge: read, checked against the server's listeners, and claimed. */
import { isIP } from 'node:net'
import { BadValue } from '../../lib/shape/check.ts'
import { Type } from '../../lib/shape/type.ts'
import { Refusal } from '../../model/errors.ts'
import { type Hostport, readHostport } from '../../model/hostport.ts'
import type { Claim, Surroundings } from './resource.ts'
import { readOr } from './resource-fields.ts'

const HTTPS_PORT = 443

/** The scope of claims for the names of TLS and HTTPS edges. */
export const EDGE_NAMES = 'edge_name'

/** The scope of claims for the ports of TCP edges. */
export const EDGE_PORTS = 'edge_tcp_port'

export const hostports = Type.Optional(
  Type.Array(Type.String({ maxBytes: 300 }), {
    description: 'Addresses at which the edge listens, each as `host:port`; null for none.',
    maxItems: 100,
  }),
)

/** Checks the names of a TLS or HTTPS edge, which share one listener; returns them in the form that the API shows. */
export function checkNames(sent: readonly string[] | undefined, around: Surroundings): string[] {
  return checkAll(sent, nameKey, ({ host, port }, field) => {
    if (host.startsWith('[') || isIP(host)) {
      const msg = `\`${field}\` must have a name, not an address: traffic is routed by name`
      throw new Refusal('BAD_HOSTPORT', msg, { field })
    }
    if (port !== HTTPS_PORT && port !== around.publicHttpsPort) {
      const msg = `\`${field}\` must have port ${ports(around.publicHttpsPort)}`
      throw new Refusal('BAD_HOSTPORT_PORT', msg, { field })
    }
    refuseServed(around, { name: host }, field)
  })
}

/** Checks the addresses of a TCP edge, which differ by port only; returns them in the form that the API shows. */
export function checkAddresses(sent: readonly string[] | undefined, around: Surroundings): string[] {
  const { from, to } = around.tcpPorts
  return checkAll(sent, portKey, ({ host, port }, field) => {
    if (host.startsWith('*')) {
      throw new Refusal('BAD_HOSTPORT', `\`${field}\` cannot have a wildcard: TCP has no names`, { field })
    }
    if (port < from || port > to) {
      throw new Refusal('BAD_HOSTPORT_PORT', `\`${field}\` must have a port between ${from} and ${to}`, { field })
    }
    refuseServed(around, { port }, field)
  })
}

/** Only the name is claimed, not the port, since TLS and HTTPS edges share one listener (D26). */
export function nameClaims(kept: readonly string[]): Claim[] {
  return kept.map((hostport, i) => claim(EDGE_NAMES, nameKey(readHostport(hostport)), hostport, i))
}

export function portClaims(kept: readonly string[]): Claim[] {
  return kept.map((hostport, i) => claim(EDGE_PORTS, portKey(readHostport(hostport)), hostport, i))
}

const nameKey = ({ host }: Hostport) => host
const portKey = ({ port }: Hostport) => String(port)

function claim(scope: string, key: string, hostport: string, i: number): Claim {
  const msg = `\`hostports\`: \`${hostport}\` belongs to another edge or to an agent ingress; remove it there first`
  return { scope, key, taken: { code: 'HOSTPORT_IN_USE', msg, field: `hostports[${i}]` } }
}

/** Refuses an address that an online agent serves. If the edge comes first, the agent's bind is refused. */
export function refuseServed(
  { endpointAt }: Surroundings,
  address: { name: string } | { port: number },
  field: string,
): void {
  const endpoint = endpointAt?.(address)
  if (endpoint !== undefined) throw servedByAgent(`\`${field}\``, field, endpoint)
}

/** The refusal of an address that an online agent serves; the message calls the address `name`. */
export function servedByAgent(name: string, field: string, endpoint: string): Refusal {
  return new Refusal(
    'HOSTPORT_SERVED_BY_AGENT',
    `${name}, or a name below it, is being served by an agent, as endpoint \`${endpoint}\`; stop that tunnel first`,
    { field },
  )
}

function checkAll(
  sent: readonly string[] | undefined,
  key: (hostport: Hostport) => string,
  check: (hostport: Hostport, field: string) => void,
): string[] {
  const seen = new Set<string>()
  return (sent ?? []).map((text, i) => {
    const field = `hostports[${i}]`
    const hostport = readOr('BAD_HOSTPORT', field, '', () => readHostport(text))
    check(hostport, field)
    if (seen.has(key(hostport))) throw new BadValue(field, 'value', `\`${field}\` is in the list twice`)
    seen.add(key(hostport))
    return text.toLowerCase()
  })
}

function ports(publicPort: number): string {
  return publicPort === HTTPS_PORT ? String(HTTPS_PORT) : `${HTTPS_PORT} or ${publicPort}`
}
